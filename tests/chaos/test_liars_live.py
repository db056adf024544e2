"""Tests liars in running labs (`liars.live`), each a run in virtual time, and programs with false records."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from liars.live import HONEST, LIARS, Live, lab, lied, outcome
from liars.table import documented

sys.path.append(str(Path(__file__).parents[1] / "virtual"))
from virtual_place import Place, kernel_missing

pytestmark = pytest.mark.sweep


def ran(live: Live, folder: Path) -> Path:
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(folder)
    (folder / "live.yaml").write_text(lab(live))
    run = place.run("--json", file="live.yaml").run_dir
    assert lied(run), f"{live.name} did nothing"
    return run


@pytest.fixture(scope="module")
def true_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(HONEST, tmp_path_factory.mktemp("honest"))


@pytest.mark.parametrize("live", LIARS, ids=[live.name for live in LIARS])
def test_no_figure_of_a_lab_is_wrong_without_a_mark(live: Live, true_dir: Path, tmp_path: Path) -> None:
    found = outcome(true_dir, ran(live, tmp_path))
    assert found.answer != "missed", found.wrong
    assert found.answer == documented()[live.name].answer, found
