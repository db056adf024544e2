"""Compares the levels of a campaign's factors: paired differences, and the effect of each factor on
each figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import fdtrc

from reports.cell import Cell
from reports.compare.comparison import MARGIN, Row, judged_rows
from reports.compare.difference import holm, paired
from reports.compare.figure import Key, is_count, is_stepped, judged, keyed, subject
from reports.metrics.metric import Metric
from reports.series import by_number
from reports.study import Study

FEWEST = 3  # least number of residual degrees of freedom of a test
# number of levels up to which each is compared with the first one; more numeric levels count as a range
MOST_LEVELS = 8
PART = 3  # of a range, the lowest and the highest third are compared
NUMBER = re.compile(r"([-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)\s*(.*)", re.IGNORECASE)
NOTHING = 1e-9  # a scatter below this share of the sum of squares is rounding


@dataclass(frozen=True)
class Moved:
    """The effect of a factor on a figure. `span` is the ratio of the largest to the smallest mean of the
    levels minus one; `low` and `high` are those two levels, smallest mean first, or the lowest and the
    highest third of a range.

    `share` is the factor's part of the figure's sum of squares. `p` is corrected for all factors and figures.
    """

    factor: str
    key: Key
    span: float
    share: float
    low: str
    high: str
    p: float


def factors(study: Study) -> list[str]:
    """Returns the factors that have several levels among the cells, by the levels that cells.jsonl
    records.
    """
    names = dict.fromkeys(name for cell in study.cells for name in cell.levels)
    return [name for name in names if len({_level(cell, name) for cell in study.cells}) > 1]


def _level(cell: Cell, factor: str) -> str:
    return str(cell.levels.get(factor, "no level"))


def differences(study: Study) -> list[Row]:
    """Returns the judged differences between the first level of each factor and its next levels, up to the
    MOST_LEVELS-th.

    Two cells are a pair if they have the same repetition, and the same levels of all other factors. Schedules
    of a pair may differ, because the factor can change what is sent.
    """
    measured = _measured(study)
    names, rows = factors(study), list[Row]()
    for factor in names:
        levels = sorted({_level(cell, factor) for cell in study.cells}, key=by_number)
        for level in levels[1:MOST_LEVELS]:
            rows += _against(measured, names, factor, (levels[0], level))
    return judged_rows(rows, MARGIN)


Measured = Sequence[tuple[Cell, dict[Key, Metric]]]


def _measured(study: Study) -> Measured:
    """Returns the judged figures of each cell."""
    return [(cell, keyed([m for m in cell.metrics if judged(m.name, m.of)])) for cell in study.cells]


def _against(measured: Measured, names: Sequence[str], factor: str, levels: tuple[str, str]) -> list[Row]:
    """Returns the rows that compare two levels of a factor over all their pairs; figures without a pair are
    left out.
    """
    others = [name for name in names if name != factor]
    sides = [
        {(*(_level(cell, name) for name in others), cell.repetition): found
         for cell, found in measured if _level(cell, factor) == level}
        for level in levels
    ]  # fmt: skip
    pairs = [(sides[0][place], sides[1][place]) for place in sides[0] if place in sides[1]]
    rows = []
    for key in dict.fromkeys(key for first, _ in pairs for key in first):
        both = [(a[key], b[key]) for a, b in pairs if key in a and key in b]
        if both:
            unit = both[0][0].unit
            values = [a.value for a, _ in both], [b.value for _, b in both]
            found = paired(*values, is_count(key[0], unit), is_stepped(unit))
            first, second = (f"{factor} {level}" for level in levels)
            rows.append(Row(key, unit, "", first, second, found))
    return rows


def moved(study: Study) -> list[Moved]:
    """Returns the effects of factors on judged figures, the largest share first: an F test of each factor in
    an additive model.

    Values that are all positive enter by their logarithms. A range (more than MOST_LEVELS numbers, as in a
    sampled design) enters by the ranks of its levels: the test finds an effect in one direction only. Figures
    with fewer than FEWEST residual degrees of freedom or without scatter are left out, and so are factors
    that the other factors determine.
    """
    names, found = factors(study), list[Moved]()
    measured = _measured(study)
    keys = dict.fromkeys(key for _, metrics in measured for key in metrics)
    for key in keys:
        rows = [(cell, metrics[key].value) for cell, metrics in measured if key in metrics]
        found += _of_figure(key, rows, names)
    corrected = holm([one.p for one in found])
    ranked = [replace(one, p=p) for one, p in zip(found, corrected, strict=True)]
    return sorted(ranked, key=lambda one: (-one.share, one.p))


def _of_figure(key: Key, rows: list[tuple[Cell, float]], names: Sequence[str]) -> list[Moved]:
    """Returns the effect of each factor on one figure, with uncorrected p-values; empty without enough
    repetitions or without scatter.
    """
    values = np.array([value for _, value in rows])
    scaled = np.log(values) if values.min() > 0 else values
    whole = float(np.sum((scaled - scaled.mean()) ** 2))
    designs = {name: _columns(rows, name) for name in names}
    left, rank = _left(scaled, list(designs.values()))
    free = len(rows) - rank
    if free < FEWEST or whole <= NOTHING * float(np.sum(scaled**2)) or whole == 0:
        return []
    found = []
    for name in names:
        without, smaller = _left(scaled, [one for other, one in designs.items() if other != name])
        if rank == smaller:
            continue  # the levels of other factors determine the level of this one
        explained, floor = max(0.0, without - left), NOTHING * whole
        p = float(fdtrc(rank - smaller, free, explained / (rank - smaller) / max(left / free, floor)))
        low, high, span = _ends(rows, name)
        found.append(Moved(name, key, span, explained / whole, low, high, p))
    return found


def _columns(
    rows: list[tuple[Cell, float]], factor: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Returns a column for each level of a factor, with 1 in the rows of that level and 0 in the others; for
    a range, one column with the ranks of its levels.
    """
    levels = sorted({_level(cell, factor) for cell, _ in rows})
    if (numbers := _numbers(levels)) is not None:
        return pl.Series([numbers[_level(cell, factor)] for cell, _ in rows]).rank().to_numpy().reshape(-1, 1)
    return np.array([[float(_level(cell, factor) == level) for level in levels] for cell, _ in rows])


def _left(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    designs: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]],
) -> tuple[float, int]:
    """Returns the sum of squares that an additive model of these factors leaves, and the model's rank."""
    design = np.hstack([np.ones((len(values), 1)), *designs])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2)), int(np.linalg.matrix_rank(design))


def _numbers(levels: Sequence[str]) -> dict[str, float] | None:
    """Returns the number of each level of a range; None for a factor with few levels, or with levels that are
    not numbers of one unit.
    """
    found = [NUMBER.fullmatch(level) for level in levels]
    known = [one for one in found if one is not None]
    if len(levels) <= MOST_LEVELS or len(known) < len(levels) or len({one[2] for one in known}) > 1:
        return None
    return {level: float(one[1]) for level, one in zip(levels, known, strict=True)}


def _thirds(levels: Sequence[str]) -> dict[str, str]:
    """Returns the levels in the lowest and the highest third of a range, each with the name of its third;
    empty for a factor that is no range.
    """
    numbers = _numbers(levels)
    if numbers is None:
        return {}
    ordered, part = sorted(levels, key=lambda level: numbers[level]), len(levels) // PART
    ends = (ordered[:part], ordered[-part:])
    return {level: f"{several[0]} to {several[-1]}" for several in ends for level in several}


def _ends(rows: list[tuple[Cell, float]], factor: str) -> tuple[str, str, float]:
    """Returns the levels with the smallest and the largest mean, and the relative difference of these means;
    infinite if the smallest mean is not above zero. A range is represented by its lowest and highest third.
    """
    found: dict[str, list[float]] = {}
    names = _thirds(sorted({_level(cell, factor) for cell, _ in rows}))
    for cell, value in rows:
        level = _level(cell, factor)
        if (name := names.get(level, "") if names else level) != "":
            found.setdefault(name, []).append(value)
    means = {level: float(np.mean(values)) for level, values in found.items()}
    low, high = min(means, key=lambda one: means[one]), max(means, key=lambda one: means[one])
    return low, high, means[high] / means[low] - 1 if means[low] > 0 else float("inf")


def effect_data(one: Moved) -> dict[str, Any]:
    """Returns an effect for scripts; `span` is infinite where the lowest mean is zero."""
    return {
        "metric": one.key[0], **subject(one.key[1]), "factor": one.factor, "share": one.share,
        "span": one.span, "lowest_at": one.low, "highest_at": one.high, "p": one.p,
    }  # fmt: skip
