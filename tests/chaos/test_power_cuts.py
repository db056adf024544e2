"""Tests that a run, a report and a campaign stay readable if the power fails between any two of their writes.

All prefixes of a command's writes are tried, not some: after each, the directory is refused with a reason, is
marked, or has the figures of the whole.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest
from writes import Step, recorded, replayed, unsynced

import vnet
from contract import manifest as vnet_manifest
from orchestrator.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAIR = str(ROOT / "topologies/pair.yaml")
AGAIN = (20, 60, 100)  # numbers of cuts in a second report, after which the figures are computed again
REFUSED, MARKED, GOOD = "refused", "marked", "good"
FAKE = ("--kernel", "fake", "-p", "hold=1 s")

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="needs strace (images/packages.sh chaos)"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a directory with a short path, because sockets are below it."""
    with tempfile.TemporaryDirectory(prefix="vc") as name:
        yield Path(name).resolve()


def command(folder: Path, *words: str) -> list[Step]:
    """Runs a vnet command and returns its writes below the directory `out`."""
    environment = {**os.environ, "VNET_STATE_DIR": str(folder / "s"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "orchestrator.cli.main", *words]
    return recorded(argv, folder / "out", folder / "strace", environment)


def tree(top: Path) -> dict[str, bytes]:
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}


def figures(run: Path) -> pl.DataFrame:
    return vnet.load(run).messages.collect()  # type: ignore[union-attr]


def outcome(run: Path, whole: Callable[[], pl.DataFrame]) -> str:
    """Returns how reading a run ends (refused, marked or good); AssertionError if a part of the run's figures
    passes as good.
    """
    try:
        manifest = vnet.load(run).manifest  # type: ignore[union-attr]
        if manifest["suspect"] or manifest["state"] != "complete":
            return MARKED
        assert figures(run).equals(whole()), f"{run}: figures of a part, and no mark"
        return GOOD
    except vnet.LoadError as error:
        assert str(run) in str(error)
        return REFUSED


def cuts(steps: Sequence[Step], top: Path, found: Callable[[], str]) -> Counter[str]:
    """Counts how reading ends after every prefix of the writes."""
    top.mkdir()
    counted = Counter[str]()
    for step in replayed(steps, top):
        if step.name != "sync":
            try:
                counted[found()] += 1
            except BaseException as error:
                raise AssertionError(f"power cut after: {step}") from error
    return counted


def run_in(top: Path) -> Path:
    return next((path for path in top.glob("*/*") if path.is_dir()), top / "none")


def test_every_prefix_of_a_run_can_be_read(folder: Path) -> None:
    steps = command(folder, "run", PAIR, *FAKE, "--results", str(folder / "out"))
    whole = figures(run_in(folder / "out"))
    for name, some in (("all", steps), ("safe", unsynced(steps))):
        top = folder / name
        counted = cuts(some, top, lambda top=top: outcome(run_in(top), lambda: whole))  # type: ignore[misc]
        print(name, dict(counted))
        assert sum(counted.values()) > 100, counted
        if some is steps:
            assert counted[GOOD] and counted[MARKED]
            assert tree(top) == tree(folder / "out"), "the steps are all that the command did"


@pytest.mark.sweep
def test_every_prefix_of_a_second_report_can_be_read(folder: Path) -> None:
    before = command(folder, "run", PAIR, *FAKE, "--results", str(folder / "out"))
    whole = figures(run_in(folder / "out"))
    shutil.copytree(folder / "out", folder / "base")
    steps = command(folder, "report", str(run_in(folder / "out")), "--reduce")
    assert before and steps
    for name, some in (("again", steps), ("safe", unsynced(steps))):
        top = folder / name
        shutil.copytree(folder / "base", top)
        counted = Counter[str]()
        for step in replayed(_existing(some, top), top):
            if step.name != "sync":
                counted[outcome(run_in(top), lambda: whole)] += 1
                assert vnet_manifest.read(run_in(top))["state"] == "complete", f"lost after {step}"
                if sum(counted.values()) in AGAIN:
                    assert _remade(run_in(top), folder / f"remade-{name}").equals(whole), f"lost after {step}"
        print(name, dict(counted))
        assert counted[GOOD] and sum(counted.values()) > 10, counted


def _remade(run: Path, copy: Path) -> pl.DataFrame:
    """Returns the figures of a copy of the run after `vnet report --reduce`."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    assert main(["report", str(copy), "--reduce"]) == 0
    return figures(copy)


def _existing(steps: Sequence[Step], top: Path) -> list[Step]:
    """Returns the steps without the creation of files that exist already: the recorder does not know which
    files existed before.
    """
    return [step for step in steps if not (step.name in ("create", "mkdir") and (top / step.path).exists())]


@pytest.mark.sweep
def test_every_prefix_of_a_campaign_can_be_read(folder: Path) -> None:
    (folder / "trial.yaml").write_text(Path(PAIR).read_text() + "\ncampaign: {repetitions: 2}\n")
    steps = command(
        folder, "campaign", "run", str(folder / "trial.yaml"), *FAKE, "--out", str(folder / "out" / "c")
    )

    def found(top: Path) -> str:
        try:
            campaign = vnet.load(top / "c")
            assert len(campaign.cells) <= 2  # type: ignore[union-attr]
            return GOOD
        except vnet.LoadError:
            return REFUSED

    for name, some in (("all", steps), ("safe", unsynced(steps))):
        top = folder / name
        counted = cuts(some, top, lambda top=top: found(top))  # type: ignore[misc]
        print(name, dict(counted))
        assert counted[GOOD] and counted[REFUSED] and sum(counted.values()) > 100
