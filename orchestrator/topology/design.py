"""Computes the points of a campaign: sets of parameter values that are listed, or that a design makes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..language import units
from ..language.problem import Problem, shown
from ..language.source import Document, Path
from . import factorial
from .search import wrong as wrong_searches

if TYPE_CHECKING:
    from .document import Axis, CampaignBlock, Design

SAMPLED = ("latin-hypercube", "halton")
MOST_POINTS = 10_000
DIGITS = 3  # significant digits of a sampled value, which people read and which is part of file names
KEYS = ("points", "design", "search")  # keys of the campaign block that define its points
TOPOLOGY = "topology"  # a listed point may have this key, which is no parameter
_BLOCK: Path = ("campaign",)
_AMOUNT = re.compile(r"\s*([-+]?[0-9.]+)\s*(\S*)\s*")
_UNIT_REMEDY = 'write numbers, or for example "5 ms", both in units of a kind'


@dataclass(frozen=True)
class Point:
    """One set of parameter values of a campaign; `number` counts from 1 and is part of its cells' names."""

    number: int
    values: dict[str, Any]
    topology: Any = None  # the only topology to which the point applies; None: all of the campaign's


def points_of(block: CampaignBlock, document: Document) -> tuple[list[Point], list[Problem]]:
    """Returns the points of a campaign block in order, and the problems; no points if the block has none of
    KEYS.

    A search has only its first point here, since each further one depends on the results before.
    """
    given = [key for key in KEYS if getattr(block, key) is not None]
    if len(given) > 1:
        rule = f"conflicts with `{given[0]}`"
        return [], [document.problem((*_BLOCK, given[1]), "", rule, "leave one of them out")]
    if block.search is not None:
        begin = Point(1, {name: search.low for name, search in block.search.items()})
        return [begin], list(wrong_searches(block.search, document))
    if block.points is not None:
        listed = [_listed(number, said) for number, said in enumerate(block.points, 1)]
        return listed, list(_unequal(listed, document))
    if block.design is None:
        return [], []
    if problems := list(_wrong(block.design, document)):
        return [], problems
    found = drawn(block.design)
    if len({tuple(point.values.values()) for point in found}) < len(found):
        rule = f"gives equal points when rounded to {DIGITS} digits"
        place = (*_BLOCK, "design", "points" if block.design.method in SAMPLED else "axes")
        return [], [document.problem(place, str(len(found)), rule, "ask for fewer, or widen a range")]
    return found, []


def drawn(design: Design) -> list[Point]:
    """Returns the points of a valid design: sampled, or combined from the values of its axes."""
    if design.method in SAMPLED:
        return sampled(design)
    values = [values_of(axis) for axis in design.axes.values()]
    rows: Iterable[tuple[Any, ...]] = itertools.product(*values)
    if design.method == "one-at-a-time":
        rows = factorial.one_at_a_time(values)
    elif design.method == "fractional":
        rows = factorial.fraction(values, points_of_fraction(design))
    return [Point(number, dict(zip(design.axes, row, strict=True))) for number, row in enumerate(rows, 1)]


def points_of_fraction(design: Design) -> int:
    """Returns the number of points of a fraction."""
    return design.points or factorial.least_points(len(design.axes))


def described(design: Design) -> str:
    """Returns a design as text, with the effects that it confounds."""
    axes = list(design.axes)
    if design.method == "fractional":
        return f"fractional: {factorial.confounded(axes, points_of_fraction(design))}"
    if design.method == "one-at-a-time":
        return "one-at-a-time: no interaction of axes can be seen"
    if design.method == "full":
        return f"full: every combination of {', '.join(axes)}"
    return f"{design.method}: {design.points} points sampled from {', '.join(axes)}, seed {design.seed}"


def values_of(axis: Axis) -> list[Any]:
    """Returns the levels of an axis, or the `steps` values of its range: both ends, and evenly between."""
    if axis.levels is not None:
        return axis.levels
    between = [_at(axis, step / (axis.steps - 1)) for step in range(1, axis.steps - 1)]
    return [axis.low, *between, axis.high]


def sampled(design: Design) -> list[Point]:
    """Returns the points of a valid design, the same for the same seed; values have the unit of their `from`.

    halton: the first n points stay the same if the design asks for more points or skips the first ones.
    """
    from scipy.stats import qmc

    dimensions, points = len(design.axes), design.points
    assert points is not None, "`_wrong` insists on it"
    if design.method == "halton":
        sequence = qmc.Halton(dimensions, rng=design.seed)
        sequence.fast_forward(design.skip)
        unit = sequence.random(points)
    else:
        unit = qmc.LatinHypercube(dimensions, rng=design.seed).random(points)
    return [
        Point(
            design.skip + row + 1,
            {name: _at(axis, float(unit[row, column])) for column, (name, axis) in enumerate(axes)},
        )
        for axes in [list(design.axes.items())]
        for row in range(points)
    ]


def _at(axis: Axis, share: float) -> Any:
    """Returns the value of an axis at a position between 0 and 1: a level, a whole number if both ends are
    whole, or a number rounded to DIGITS digits. No value lies outside the range.
    """
    if axis.levels is not None:
        return axis.levels[min(int(share * len(axis.levels)), len(axis.levels) - 1)]
    low, unit = _number(axis.low)
    high, _ = _number(axis.high)
    scale = _factor(axis.high) / _factor(axis.low)  # both ends in the unit of `from`
    high *= scale
    value = low * (high / low) ** share if axis.scale == "log" else low + (high - low) * share
    if isinstance(axis.low, int) and isinstance(axis.high, int):
        return round(value)
    rounded = _rounded(value)
    if not low <= rounded <= high:  # rounding must not lead outside the requested range
        return axis.low if rounded < low else axis.high
    return f"{rounded:.12g} {unit}" if unit else rounded


def _rounded(value: float) -> float:
    return round(value, DIGITS - 1 - math.floor(math.log10(value))) if value > 0 else 0.0


def _wrong(design: Design, document: Document) -> Iterator[Problem]:
    base: Path = (*_BLOCK, "design")
    yield from _wrong_number(design, document)
    if "seed" in design.model_fields_set and design.method not in SAMPLED:
        rule, remedy = f"goes with sampled points alone: {design.method} draws nothing", "leave it out"
        yield document.problem((*base, "seed"), str(design.seed), rule, remedy)
    if design.skip and design.method != "halton":
        rule = "goes with `method: halton` alone: other designs have no first points"
        yield document.problem((*base, "skip"), str(design.skip), rule, "leave it out")
    for name, axis in design.axes.items():
        place: Path = (*base, "axes", name)
        stepped = design.method in ("full", "one-at-a-time") and axis.levels is None
        if "steps" in axis.model_fields_set and not stepped:
            rule, remedy = "goes with ranges of `full` and `one-at-a-time` alone", "leave it out"
            yield document.problem((*place, "steps"), str(axis.steps), rule, remedy)
        if design.method == "fractional" and axis.levels is not None and len(axis.levels) != 2:
            rule, remedy = "a fraction has two levels of each axis", "write two of them, or `method: full`"
            yield document.problem((*place, "levels"), str(len(axis.levels)), rule, remedy)
        if axis.levels is not None:
            yield from _wrong_levels(axis, axis.levels, place, document)
        elif axis.low is None or axis.high is None:
            remedy = "write {from: 50 kbit/s, to: 10 Mbit/s, scale: log}, or {levels: [full, half]}"
            yield document.problem(place, "", "has neither `from` and `to` nor `levels`", remedy)
        elif bad := _bad_range(axis):
            yield document.problem(place, f"{shown(axis.low)} to {shown(axis.high)}", *bad)


def _wrong_levels(axis: Axis, levels: list[Any], place: Path, document: Document) -> Iterator[Problem]:
    """Yields a problem for each level that is no single value or equals an earlier one, and for a range or a
    scale beside levels.
    """
    if axis.low is not None or axis.high is not None:
        yield document.problem(place, "", "has both levels and a range", "leave one of them out")
    if "scale" in axis.model_fields_set:
        yield document.problem((*place, "scale"), shown(axis.scale), "goes with a range", "leave it out")
    seen: set[object] = set()
    for index, level in enumerate(levels):
        at = (*place, "levels", index)
        if level is None or isinstance(level, dict | list):
            rule, remedy = "a level is a single value", "write numbers, texts or quantities"
            yield document.problem(at, shown(level), rule, remedy)
        elif (amount := _amount(level)) in seen:
            yield document.problem(at, shown(level), "stands twice", "remove one of them")
        else:
            seen.add(amount)


def _amount(level: Any) -> object:
    """Returns a key that equal levels share: number and kind of a quantity, else the text."""
    try:
        number, unit = _number(level)
    except units.UnitError:
        return str(level)
    kind = _kind(unit)
    return (kind.name, number * float(kind.units[unit])) if kind else number


def _wrong_number(design: Design, document: Document) -> Iterator[Problem]:
    """Yields a problem if the number of points does not go with the method."""
    place, axes, points = (*_BLOCK, "design", "points"), len(design.axes), design.points
    if design.method in SAMPLED:
        if points is None:
            yield document.problem(place, "", f"is missing: {design.method} samples", "write how many points")
    elif design.method != "fractional":
        if points is not None:
            rule = f"does not go with `{design.method}`, whose axes give the number"
            yield document.problem(place, str(points), rule, "leave it out, or write `steps` at the axes")
        combinations = math.prod(len(axis.levels or ()) or axis.steps for axis in design.axes.values())
        if design.method == "full" and combinations > MOST_POINTS:
            rule = f"{combinations} combinations are more than {MOST_POINTS}"
            yield document.problem((*_BLOCK, "design", "axes"), "", rule, "sample: `method: latin-hypercube`")
    elif not 3 <= axes <= factorial.MOST_AXES:
        rule = f"a fraction has 3 to {factorial.MOST_AXES} axes"
        yield document.problem((*_BLOCK, "design", "axes"), str(axes), rule, "write `method: full`")
    elif points is not None and (points & (points - 1) or not axes < points < 2**axes):
        rule = f"is no power of two above {axes} and below {2**axes}"
        remedy = f"write {factorial.least_points(axes)}, or leave it out" if axes > 3 else "write 4"
        yield document.problem(place, str(points), rule, remedy)
    elif points is None and axes == 3:
        rule, remedy = "no fraction of 3 axes has resolution IV", "write `method: full`, or `points: 4`"
        yield document.problem(place, "", rule, remedy)


def _bad_range(axis: Axis) -> tuple[str, str] | None:
    """Returns the rule that a range breaks, and its remedy; None if it breaks none."""
    try:
        (low, unit), (high, other) = _number(axis.low), _number(axis.high)
        if _kind(unit) is not _kind(other):
            return "goes from one kind of quantity to another", _UNIT_REMEDY
        low, high = low * _factor(axis.low), high * _factor(axis.high)
    except units.UnitError as error:
        return error.rule, error.remedy
    if low < 0:
        return "begins below zero", "begin at zero or above, or write `levels`"
    if high <= low:
        return "does not rise", "write the smaller value at `from`"
    if axis.scale == "log" and low == 0:
        return "a logarithmic range begins above zero", "begin above zero, or write `scale: linear`"
    return None


def _number(value: Any) -> tuple[float, str]:
    """Splits a value into number and unit ("" for a bare number); raises UnitError for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    found = _AMOUNT.fullmatch(str(value))
    kind = _kind(found[2]) if found else None
    if found is None or kind is None:
        known = "; ".join(quantity.known for quantity in units.QUANTITIES.values())
        raise units.UnitError("is not a number with a unit", f'write for example "20 ms" (units: {known})')
    units.real(kind, value)
    return float(found[1]), found[2]


def _kind(unit: str) -> units.Quantity | None:
    return next((kind for kind in units.QUANTITIES.values() if unit in kind.units), None)


def _factor(value: Any) -> float:
    """Returns the factor from the value's unit to the internal unit; 1 without a unit."""
    _, unit = _number(value)
    kind = _kind(unit)
    return 1.0 if kind is None else float(kind.units[unit])


def _listed(number: int, said: dict[str, Any]) -> Point:
    values = {name: value for name, value in said.items() if name != TOPOLOGY}
    return Point(number, values, said.get(TOPOLOGY))


def _unequal(points: Sequence[Point], document: Document) -> Iterator[Problem]:
    """Yields problems of listed points: invalid topology names, points that set other parameters than the
    first one of their topology, and points listed twice.
    """
    seen: dict[str | None, list[dict[str, Any]]] = {}
    for index, point in enumerate(points):
        place: Path = (*_BLOCK, "points", index)
        if not isinstance(point.topology, str | None):
            remedy = "write a file's name, beside this one"
            yield document.problem((*place, TOPOLOGY), shown(point.topology), "is no topology", remedy)
            continue
        before = seen.setdefault(point.topology, [])
        if before and point.values.keys() != before[0].keys():
            which = f"the first point with {point.topology}" if point.topology else "the first point"
            rule = f"does not set what {which} sets: {', '.join(before[0])}"
            yield document.problem(place, shown(point.values), rule, "set the same parameters in all points")
        elif point.values in before:
            yield document.problem(place, shown(point.values), "stands twice", "remove one of them")
        before.append(point.values)
