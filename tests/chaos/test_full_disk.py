"""Tests that a disk that becomes full at any write of a run, a report or a campaign loses no data, and that
the error names the file.

Every call that uses disk space is tried, one after the other: first this call alone fails, then this call and
all calls after it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from full import FullDisk, Outcome, fresh, full_disk

from contract import manifest as vnet_manifest

ROOT = Path(__file__).resolve().parents[2]
PAIR = ROOT / "topologies" / "pair.yaml"
FAKE = ("--kernel", "fake", "-p", "hold=1 s")
SOURCES = (
    "raw",
    "pcap",
    "plan.json",
    "topology.yaml",
    "topology.svg",
    "proof.json",
)  # no command makes these files again
CELLS = """\
name: cells
seed: 1
campaign:
  topologies: [pair.yaml]
  parameters: {hold: 1 s}
  factors: {delay: [1 ms, 5 ms]}
"""

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="full.c: no gcc (images/packages.sh build)"
)


@pytest.fixture(scope="module")
def disk() -> Iterator[FullDisk]:
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        folder = Path(name).resolve()
        (folder / "top").mkdir()
        with full_disk(folder) as made:
            yield made


@pytest.fixture(scope="module")
def base(disk: FullDisk) -> Path:
    """Makes a reported run of the fake driver, outside the disk that gets full."""
    done = disk.vnet("run", str(PAIR), *FAKE, "--results", str(disk.top / "out"))
    assert done.status == 0, done.said
    (run,) = (disk.top / "out").glob("*/2*")
    return Path(shutil.copytree(run, disk.top.parent / "base"))


def sources(run: Path) -> dict[str, bytes]:
    found = (p for name in SOURCES for p in (run / name, *sorted((run / name).rglob("*"))))
    return {str(p.relative_to(run)): p.read_bytes() for p in found if p.is_file()}


def told(outcome: Outcome, at: int, stays: bool) -> str:
    """Returns what is wrong with a command's end after call `at` failed; empty if nothing is."""
    failed = outcome.calls[at - 1]
    all_failed = outcome.calls[at - 1 :] if stays else [failed]
    if outcome.status is None:
        return "did not end in time"
    if "Traceback" in outcome.said or "internal error" in outcome.said:
        return f"no error of ours: {outcome.said[-400:]}"
    if outcome.status and not any(names(outcome.said, one) for one in all_failed):
        return f"status {outcome.status} does not name {failed}: {outcome.said[-400:]}"
    return ""


def names(said: str, failed: Path) -> bool:
    """Returns whether an error names the file, or the file to which it would have been renamed, by its path
    or its name in the run directory.
    """
    whole = failed.with_name(failed.name.partition(".part")[0].removesuffix(".new"))
    return any(
        text in said for one in (failed, whole) for text in (str(one), f"{one.parent.name}/{one.name}")
    )


def reported(disk: FullDisk, base: Path, at: int, stays: bool) -> str:
    """Reports a run while call `at` fails, then again; returns what is wrong."""
    run = disk.top / "run"
    fresh(base, run)
    outcome = disk.vnet("report", str(run), "--reduce", at=at, stays=stays)
    if at > len(outcome.calls):
        return f"only {len(outcome.calls)} calls"
    if wrong := told(outcome, at, stays):
        return wrong
    if outcome.status == 0:
        return f"status 0 although {outcome.calls[at - 1]} failed"
    if sources(run) != sources(base):
        return "records were changed"
    if vnet_manifest.read(run)["state"] != "complete":
        return "the manifest is lost"
    if more := {p.name for p in run.rglob("*")} - {p.name for p in base.rglob("*")}:
        return f"left behind: {sorted(more)}"
    again = disk.vnet("report", str(run), "--reduce")
    if again.status != 0:
        return f"again: {again.status}: {again.said[-400:]}"
    same = (run / "summary.json").read_bytes() == (base / "summary.json").read_bytes()
    return "" if same else "again: other figures"


def tried(numbers: range, one: Callable[[int, bool], str]) -> None:
    """Tries each number, with a disk that stays full and with one that is full for one call only."""
    counted = Counter[bool]()
    wrong = list[str]()
    for at in numbers:
        for stays in (True, False):
            counted[stays] += 1
            if said := one(at, stays):
                wrong.append(f"call {at}{' and all after it' if stays else ''}: {said}")
                print(wrong[-1], flush=True)
    print(f"{counted.total()} cases, {len(wrong)} wrong")
    assert counted.total() and not wrong


@pytest.mark.timeout(0)
@pytest.mark.parametrize("numbers", [range(1, 20, 6), pytest.param(None, marks=pytest.mark.sweep)])
def test_at_each_write_of_a_report(disk: FullDisk, base: Path, numbers: range | None) -> None:
    fresh(base, disk.top / "run")
    calls = len(disk.vnet("report", str(disk.top / "run"), "--reduce").calls)
    assert calls > 100, "reduction, seal, figures, tables and page"
    tried(numbers or range(1, calls + 1), lambda at, stays: reported(disk, base, at, stays))


def ran(disk: FullDisk, messages: int, at: int, stays: bool) -> str:
    """Runs an experiment while call `at` fails, then again; returns what is wrong."""
    shutil.rmtree(disk.top / "out", ignore_errors=True)
    words = ("run", str(PAIR), *FAKE, "--results", str(disk.top / "out"))
    outcome = disk.vnet(*words, at=at, stays=stays)
    if at > len(outcome.calls):
        return f"only {len(outcome.calls)} calls"
    if wrong := told(outcome, at, stays):
        return wrong
    runs = sorted((disk.top / "out").glob("*/2*"))
    if outcome.status == 0 and counted(runs[0]) != messages:
        return f"status 0 although {outcome.calls[at - 1]} failed, with {counted(runs[0])} messages"
    if outcome.status == 0 and not suspect(runs[0]):
        return f"status 0 and no mark although {outcome.calls[at - 1]} failed"
    for run in runs:
        before = sources(run)
        report = disk.vnet("report", str(run))
        if report.status not in (0, 1) or str(run) not in report.said or "internal error" in report.said:
            return f"report of what was begun: {report.status}: {report.said[-400:]}"
        if sources(run) != before:
            return f"report of what was begun changed {run}"
    if (disk.top / "s").is_dir() and (left := sorted(p.name for p in (disk.top / "s").iterdir())):
        return f"left behind: {left}"
    shutil.rmtree(disk.top / "out", ignore_errors=True)
    again = disk.vnet(*words)
    return "" if again.status == 0 else f"again: {again.status}: {again.said[-400:]}"


def counted(run: Path) -> int:
    return pl.read_parquet(run / "messages.parquet").height


def suspect(run: Path) -> bool:
    return any(one["suspect"] for one in vnet_manifest.read(run)["warnings"])


@pytest.mark.timeout(0)
@pytest.mark.sweep
def test_at_each_write_of_a_run(disk: FullDisk) -> None:
    done = disk.vnet("run", str(PAIR), *FAKE, "--results", str(disk.top / "out"))
    assert done.status == 0 and len(done.calls) > 200, done.said
    (run,) = (disk.top / "out").glob("*/2*")
    messages = counted(run)
    tried(range(1, len(done.calls) + 1), lambda at, stays: ran(disk, messages, at, stays))


def complete(directory: Path) -> dict[str, str]:
    """Returns the run directory of each complete cell that the journal holds."""
    journal = directory / "cells.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    read = [json.loads(line) for line in lines if line.endswith("\n")]
    return {line["cell"]: line["run_dir"] for line in read if line["state"] == "complete"}


def went_on(disk: FullDisk, file: Path, at: int, stays: bool) -> str:
    """Runs a campaign while call `at` fails, then goes on with it; returns what is wrong."""
    place = disk.top / "c"
    shutil.rmtree(place, ignore_errors=True)
    words = ("campaign", "run", str(file), "--kernel", "fake", "--out", str(place))
    outcome = disk.vnet(*words, at=at, stays=stays)
    if at > len(outcome.calls):
        return f"only {len(outcome.calls)} calls"
    if wrong := told(outcome, at, stays):
        return wrong
    before = complete(place)
    if outcome.status == 0 and len(before) != 2:
        return f"status 0 although {outcome.calls[at - 1]} failed, with {len(before)} cells"
    tables = {run: (place / run / "messages.parquet").read_bytes() for run in before.values()}
    again = disk.vnet(*words, "--retry-failed")
    if again.status != 0:
        return f"again: {again.status}: {again.said[-400:]}"
    after = complete(place)
    if len(after) != 2 or not before.items() <= after.items():
        return f"cells {before}, then {after}"
    lost = [run for run, table in tables.items() if (place / run / "messages.parquet").read_bytes() != table]
    return f"changed: {lost}" if lost else ""


@pytest.mark.timeout(0)
@pytest.mark.sweep
def test_at_each_write_of_a_campaign(disk: FullDisk) -> None:
    file = disk.top.parent / "cells.yaml"
    file.write_text(CELLS)
    shutil.copy(PAIR, file.parent)
    done = disk.vnet("campaign", "run", str(file), "--kernel", "fake", "--out", str(disk.top / "c"))
    assert done.status == 0 and len(complete(disk.top / "c")) == 2, done.said
    tried(range(1, len(done.calls) + 1), lambda at, stays: went_on(disk, file, at, stays))


def test_a_file_that_the_disk_does_not_hold_is_no_matter(disk: FullDisk, base: Path, tmp_path: Path) -> None:
    """Shows that the preloaded library (full.c) counts only calls on files below its directory."""
    run = tmp_path / "run"
    fresh(base, run)
    assert disk.vnet("report", str(run), "--reduce", at=1, stays=True).status == 0
