"""Tests that whatever makes a figure wrong by more than its interval also leaves a mark: a mutation test of
the evidence.

One run is made, and its files are changed in many ways (`liars`): as a faulty writer would write them, or as
somebody could change them afterwards. Then it is evaluated as `vnet` does. docs/reliability.md has the
outcome of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from liars.base import LAB
from liars.liar import Liar, Truth, tried
from liars.registry import FILES, titled
from liars.table import documented

sys.path.append(str(Path(__file__).parents[1] / "virtual"))
from virtual_place import Place, kernel_missing


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    if why := kernel_missing():
        pytest.skip(why)
    place = Place(tmp_path_factory.mktemp("truth"))
    (place.cwd / "truth.yaml").write_text(LAB)
    run = place.run("--strict", file="truth.yaml").run_dir
    return Truth(run)


def test_the_run_that_is_lied_about_has_no_mark(truth: Truth) -> None:
    assert truth.marks == set()
    assert len(truth.figures) > 100


def fast() -> set[str]:
    """Returns the first liar in the table that each check finds, and all liars that no check finds."""
    known, found = set[str](), set[str]()
    for row in documented().values():
        codes = set(row.by.split(", "))
        if row.answer != "caught" or not codes <= known:
            known |= codes
            found.add(row.name)
    return found


SWEEP = [pytest.mark.sweep]
TRIED = [pytest.param(liar, id=name, marks=[] if name in fast() else SWEEP) for name, liar in FILES.items()]


@pytest.mark.parametrize("liar", TRIED)
def test_no_figure_is_wrong_without_a_mark(liar: Liar, truth: Truth, tmp_path: Path) -> None:
    found = tried(truth, liar, tmp_path)
    assert found.answer != "missed", found.wrong
    assert found.answer == documented()[liar.name].answer, found


def test_the_docs_have_every_liar() -> None:
    names = [name for group in titled().values() for name in group]
    assert list(documented()) == names and len(set(names)) == len(names) >= 60
