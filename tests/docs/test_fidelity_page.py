"""The page of fidelity: its bounds and cells. tests/virtual/test_fidelity_figures.py runs the lab."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
sys.path.insert(0, str(PROJECT / "bench"))

from fidelity_page import HEAD, KNOWN, failing, page  # noqa: E402 - after the path
from fidelity_rows import ROWS, Pair  # noqa: E402


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
    assert "| not run | 3, 1.5: **fails** | 2 % |" in rows[0]
    assert "| not run | 1, 1: holds |" in rows[1]
    assert "Column *host kernel* was not run: needs root" in text


def test_a_row_that_fails_for_a_known_cause_has_the_cause_on_the_page() -> None:
    pairs = {row.key: Pair(1.0, 1.0) for row in ROWS}
    assert set(KNOWN) <= set(pairs)
    assert failing({"virtual": pairs}) == [] and not any(
        cause in page({"virtual": pairs}) for cause in KNOWN.values()
    )
    wrong = pairs | {key: Pair(3.0, 1.0) for key in KNOWN}
    assert failing({"host": "no", "virtual": wrong}) == list(KNOWN)
    assert all(cause in page({"virtual": wrong}) for cause in KNOWN.values())
