"""Joins the RFC 2544 tables of all sides of a comparison: a row for each frame size and side."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from reports.compare.comparison import Comparison
from reports.sections.tabular import Column, Table
from reports.study import Study
from reports.trials import Row, of_trials, trial_rows

SIZE = "frame_size"  # a factor of this name already gives each size a row of its own


def rows(one: Comparison) -> list[Row]:
    """Returns the header, then a row for each stream, frame size and side, and for each condition if there
    are several. Empty if no compared run has trials, or if all sides are baselines.
    """
    study = _study(one)
    if not (study.cells and of_trials(study)):
        return []
    head, *body = trial_rows(study)
    return [tuple("side" if title == "condition" else title for title in head), *body]


def shown(one: Comparison) -> Table | None:
    """Returns the rows as a table of the page; None without trials."""
    if not (found := rows(one)):
        return None
    texts = ("frame size", "side", "limited by")
    return Table(tuple(Column(title, text=title in texts) for title in found[0]), tuple(found[1:]))


def _study(one: Comparison) -> Study:
    """Returns a study of all runs of the sides: a series for each side and condition."""
    conditions = Counter(_words(found.condition) for found in one.matches)
    several = len(conditions) > 1
    names = {side.letter: f"{side.letter}: {Path(side.name).name}" for side in one.sides}
    cells = {}
    for letter in names:
        for found in one.matches:
            if letter not in found.letters:
                continue
            more = f", {_words(found.condition)}" if several else ""
            for sample in (found.a, found.b)[found.letters.index(letter)]:
                if sample.cell is not None:
                    series = names[letter] + more
                    cell = replace(sample.cell, scenario="", series=series)
                    cells[letter, found.name, sample.name] = cell
    return Study("comparison", Path(), tuple(cells.values()), False)


def _words(condition: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{factor} {level}" for factor, level in condition if factor != SIZE)
