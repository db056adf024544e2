"""Tests that a changed run directory, reported again, is refused, is marked, or has the same figures."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from mutated import SHAPE, all_of, called, tried
from synthetic import write_run

from contract import manifest, seal
from orchestrator.cli.main import main
from reports.rundir import read_run

SEEDS = range(9)  # further seeds: make mutate


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return all_of(tmp_path_factory.mktemp("wholes"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_changed_directory_gives_no_wrong_figure_unmarked(
    seed: int, wholes: list[Path], tmp_path: Path
) -> None:
    said, outcome = tried(wholes[seed % len(wholes)], seed, tmp_path)
    assert outcome in ("refused", "marked", "unchanged"), said


def test_what_was_not_changed_has_no_mark(wholes: list[Path]) -> None:
    run = wholes[0]
    assert seal.altered(run) == ()
    manifest.hashed(run, {"x": "y"})  # the only function that writes it, so that the seal stays valid
    assert seal.altered(run) == ()
    assert read_run(run).altered == ()


def test_a_figure_changed_by_hand_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", SHAPE)
    seal.seal(run)
    os.truncate(run / "proof.json", 0)
    (run / "packets" / "another.parquet").write_bytes((run / "packets" / "lan.parquet").read_bytes())
    assert seal.altered(run) == ("proof.json", "packets/another.parquet")
    assert main(["report", str(run)]) == 0
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "proof.json was changed after it had been written" in page and "<strong>Suspect." in page


def test_a_seal_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    for name in ("../plan.json", "/etc/passwd", "packets/../../x.parquet"):
        (tmp_path / seal.NAME).write_text(json.dumps({name: "0"}))
        assert seal.altered(tmp_path) == (seal.NAME,)


def test_a_record_changed_by_hand_is_marked_however_often_it_is_reduced(
    wholes: list[Path], tmp_path: Path
) -> None:
    """Shows that the mark stays although each reduction makes new tables, and their seal, from the changed
    record.
    """
    for name in ("raw/messages.csv", "pcap/right.pcap", "proof.json"):
        run = tmp_path / name.replace("/", "-")
        shutil.copytree(wholes[2], run, copy_function=shutil.copy2)
        with (run / name).open("r+b") as file:
            file.seek(-2, os.SEEK_END)
            file.write(b"\n ")
        for _ in range(2):
            assert called("report", str(run), "--reduce")[0] == 0
        page = (run / "report" / "index.html").read_text(encoding="utf-8")
        assert f"{name} was changed after it had been reduced" in page and "<strong>Suspect." in page


def test_records_that_were_not_changed_have_no_mark(wholes: list[Path], tmp_path: Path) -> None:
    """Shows that unchanged records get no mark, nor do runs of earlier versions, whose seal lacks records, or
    unfinished runs.
    """
    run = shutil.copytree(wholes[2], tmp_path / "run", copy_function=shutil.copy2)
    before = (run / "manifest.json").read_bytes()
    sealed = json.loads((run / seal.NAME).read_text())
    assert {"raw/messages.csv", "pcap/right.pcap"} <= sealed.keys()
    tables = {name: digest for name, digest in sealed.items() if not name.startswith(("raw/", "pcap/"))}
    (run / seal.NAME).write_text(json.dumps(tables))
    assert called("report", str(run), "--reduce")[0] == 0
    assert (run / "manifest.json").read_bytes() == before and seal.altered_records(run) == ()
    seal.seal(run, records=False)
    os.truncate(run / "raw" / "messages.csv", 0)
    assert seal.altered_records(run) == ()


def test_a_manifest_whose_writer_is_killed_is_not_called_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", SHAPE)
    seal.seal(run)
    monkeypatch.setattr(seal, "renew", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        manifest.hashed(run, {"x": "y"})
    assert manifest.read(run)["hashes"] == {"x": "y"} and seal.altered(run) == ()
