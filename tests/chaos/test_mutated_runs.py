"""A run directory that was changed, reported again: refused, marked, or of the same figures."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from mutated import SHAPE, original, tried
from synthetic import write_run

from capture import manifest, seal
from orchestrator.cli.main import main
from reports.rundir import read_run

SEEDS = range(5)  # the rest: make mutate


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [original(tmp_path_factory.mktemp(kind), kind == "campaign") for kind in ("run", "campaign")]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_changed_directory_gives_no_wrong_figure_unmarked(
    seed: int, wholes: list[Path], tmp_path: Path
) -> None:
    said, outcome = tried(wholes[seed % 5 == 0], seed, tmp_path)
    assert outcome in ("refused", "marked", "unchanged"), said


def test_what_was_not_changed_has_no_mark(wholes: list[Path]) -> None:
    run = wholes[0]
    assert seal.altered(run) == ()
    manifest.hashed(run, {"x": "y"})  # its one writer keeps the seal whole
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
