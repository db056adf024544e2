"""Tests the bounds and cells of the fidelity page; tests/virtual/test_fidelity_figures.py runs the lab."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
sys.path.insert(0, str(PROJECT / "bench"))

from fidelity_page import HEAD, disturbed, failing, page  # noqa: E402 - after the path
from fidelity_rows import ROWS, Pair  # noqa: E402

from contract.manifest import Manifest  # noqa: E402


def test_a_bound_is_relative_to_the_other_figure() -> None:
    row = ROWS[0]
    assert row.bound == 0.02
    assert [row.holds(Pair(ours, 20.0)) for ours in (19.59, 19.61, 20.39, 20.41)] == [
        False,
        True,
        True,
        False,
    ]


def test_the_page_has_every_row_and_says_what_was_not_run() -> None:
    pairs = {row.key: Pair(1.0, 1.0) for row in ROWS} | {ROWS[0].key: Pair(3.0, 1.5)}
    text = page({"host": "needs root", "virtual": pairs})
    rows = [line for line in text[len(HEAD) :].splitlines() if line.startswith("|")][2:]
    assert len(rows) == len(ROWS)
    assert "| none | 3, 1.5: **fails** | 2 % |" in rows[0]
    assert "| none | 1, 1: holds |" in rows[1]
    assert "Column *host kernel* has no figures: needs root" in text


def test_a_figure_out_of_its_bound_in_any_column_fails() -> None:
    pairs = {row.key: Pair(1.0, 1.0) for row in ROWS}
    wrong = pairs | {"padhye": Pair(3.0, 1.0)}
    assert failing({"host": "not run", "virtual": pairs}) == []
    assert (
        failing({"uml": pairs, "virtual": wrong}) == failing({"uml": wrong, "virtual": pairs}) == ["padhye"]
    )


def test_a_column_without_impairments_leaves_their_rows_empty_and_says_so() -> None:
    pairs = {row.key: Pair(1.0, 1.0) for row in ROWS if not row.impaired}
    text = page({"host": pairs})
    rows = [line for line in text[len(HEAD) :].splitlines() if line.startswith("|")][2:]
    assert ["none" in line for line in rows] == [row.impaired for row in ROWS]
    assert 0 < len(pairs) < len(ROWS)
    assert "Column *host kernel* is of the lab without impairments" in text
    assert failing({"host": pairs}) == []


def test_a_suspect_run_has_no_figures_but_the_reason() -> None:
    note = {"code": "note", "text": "a remark", "suspect": False}
    busy = {"code": "late", "text": "the lab's own loop came late", "suspect": True}
    assert disturbed(Manifest(suspect=False, warnings=[note])) == ""
    said = disturbed(Manifest(suspect=True, warnings=[note, busy]))
    assert said == "its run was suspect: the lab's own loop came late"
