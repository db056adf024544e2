"""Compares sides figure by figure: the difference of each, its interval, and a verdict.

The alarms of one comparison hold together: the probability that any of them is false is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from reports.compare.bootstrap import bootstrapped
from reports.compare.difference import Difference, apart, holm, none, paired, repetitions
from reports.compare.errors import CompareError, near
from reports.compare.figure import Key, figure, is_count, is_stepped, judged
from reports.compare.pairing import Match, matches, twins
from reports.compare.side import Sample, Side

FALSE_ALARM = 0.05  # probability that at least one alarm of a comparison is false
MARGIN = 0.05  # relative difference from which a difference matters
ENOUGH = 0.5  # share of the smaller side's runs that need a partner for a paired difference
TWINS = "the same run, or repeated to the byte"
Finding = Literal["differs", "no difference", "cannot tell"]
DIFFERS: Finding = "differs"
SAME: Finding = "no difference"  # the whole interval is within the margin
OPEN: Finding = "cannot tell"


@dataclass(frozen=True)
class Row:
    """One figure in one condition, compared between side `a` and side `b` (letters). `p` is corrected for the
    number of figures. `more` is the number of further repetitions that narrow the interval to the margin;
    None if it is unknown or not needed.
    """

    key: Key
    unit: str
    condition: str
    a: str
    b: str
    difference: Difference
    p: float = 1.0
    finding: Finding = OPEN
    more: int | None = None

    @property
    def what(self) -> str:
        """The figure, its subject and its condition as text."""
        name, of = self.key
        parts = [figure(name).title + (f" of {of.words}" if of.words else ""), self.condition]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Comparison:
    """The compared sides, each against the first one, and a row for each figure."""

    sides: tuple[Side, ...]
    rows: tuple[Row, ...]
    margin: float
    notes: tuple[str, ...]
    matches: tuple[Match, ...] = ()

    def found(self, finding: Finding) -> list[Row]:
        return [row for row in self.rows if row.finding == finding]

    @property
    def family(self) -> int:
        """The number of figures for which the p-values are corrected."""
        return sum(tested(row.difference) for row in self.rows)


def compare(sides: Sequence[Side], margin: float = MARGIN, also: Iterable[str] = ()) -> Comparison:
    """Compares the first side with each other one, for the judged figures and those named in `also`.

    `margin` is the relative difference up to which a figure counts as not different. CompareError if two
    sides have no condition or no figure in common, or if a side did not measure a figure of `also`.
    """
    also = frozenset(also)
    _insist_on(sides, also)
    rows: list[Row] = []
    notes = [f"{side.letter}: {note}" for side in sides for note in (*side.notes, *_suspects(side))]
    notes += [f"A and {one.letter} are the same: {one.name}" for one in sides[1:] if _same(one, sides[0])]
    found: list[Match] = []
    for other in sides[1:]:
        common, lonely = matches(sides[0], other)
        notes += lonely
        these = [row for one in common for row in _rows(one, sides[0], other, also)]
        if not these:
            raise CompareError(
                f"{sides[0].name} and {other.name} have no figure in common: {_measured(sides[0])} against "
                f"{_measured(other)}; compare runs that measure the same classes, groups or links"
            )
        for one in common:
            notes += [f"{one.name}: {text}" if one.name else text for text in one.why]
        notes += _one_sided(common, other, sides[0])
        rows += these
        found += common
    return Comparison(tuple(sides), tuple(judged_rows(rows, margin)), margin, tuple(notes), tuple(found))


def _same(one: Side, other: Side) -> bool:
    return Path(one.name).resolve() == Path(other.name).resolve()


def _insist_on(sides: Sequence[Side], also: frozenset[str]) -> None:
    """Raises CompareError if at least one side did not measure a figure of `also`."""
    has = {side.letter: {name for one in side.samples for name, _ in one.metrics} for side in sides}
    for name in sorted(also):
        lack = [letter for letter, names in has.items() if name not in names]
        if len(lack) == len(sides):
            raise CompareError(f"no side measured {name!r}; {near(name, set().union(*has.values()))}")
        if lack:
            raise CompareError(
                f"{', '.join(lack)} has no figure {name!r}, so it cannot be compared; leave it out, or "
                f"compare runs that measured it (`vnet baseline save --metric {name}` keeps it in a baseline)"
            )


def _rows(one: Match, a: Side, b: Side, also: frozenset[str]) -> list[Row]:
    """Returns the rows of a condition: one for each figure that both sides have and that is judged
    or in `also`.
    """
    there = [dict.fromkeys(key for sample in side for key in sample.metrics) for side in (one.a, one.b)]
    rows = []
    for key in there[0]:
        if key not in there[1] or not (judged(*key) or key[0] in also):
            continue
        unit = next(m.unit for sample in one.a if (m := sample.metrics.get(key)))
        rows.append(Row(key, unit, one.name, a.letter, b.letter, difference(one, key, unit)))
    return rows


def difference(one: Match, key: Key, unit: str) -> Difference:
    """Returns the difference of one figure: of pairs if at least two, and half of the smaller side's runs,
    have a partner; else of independent repetitions.

    A single pair of single runs is compared by its messages, if they are enough. If all pairs are twins,
    there is no difference.
    """
    kind = is_count(key[0], unit), is_stepped(unit)
    pairs = [(x, y) for x, y in one.pairs if key in x.metrics and key in y.metrics]
    a, b = (_values(side, key) for side in (one.a, one.b))
    if 2 <= len(pairs) >= ENOUGH * min(len(a), len(b)) or (pairs and len(a) == len(b) == 1):
        first, second = ([side[i].metrics[key].value for side in pairs] for i in (0, 1))
        if all(twins(*pair) for pair in pairs):
            return none(first, TWINS)
        found = paired(first, second, *kind)
        return (bootstrapped(key, *pairs[0]) or found) if len(pairs) == 1 else found
    return apart(a, b, *kind)


def _values(samples: Sequence[Sample], key: Key) -> list[float]:
    return [sample.metrics[key].value for sample in samples if key in sample.metrics]


def judged_rows(rows: Sequence[Row], margin: float) -> list[Row]:
    """Returns the rows with their verdicts: differences first, the largest before the others."""
    family = [row for row in rows if tested(row.difference)]
    p = dict(zip(map(id, family), holm([row.difference.p for row in family]), strict=True))
    found = []
    for row in rows:
        finding = _finding(row.difference, p.get(id(row), 1.0), margin)
        more = repetitions(row.difference, margin) if finding == OPEN else None
        found.append(replace(row, p=p.get(id(row), 1.0), finding=finding, more=more))
    order = (DIFFERS, OPEN, SAME)
    return sorted(found, key=lambda row: (order.index(row.finding), -_size(row.difference)))


def tested(one: Difference) -> bool:
    """Returns whether a figure can show a difference; one without an interval, or with equal values, never
    does.
    """
    return one.known and not (one.error == 0 and one.shift == 0)


def _finding(one: Difference, p: float, margin: float) -> Finding:
    if p < FALSE_ALARM:
        return DIFFERS
    changes = one.changes()
    return SAME if changes is not None and max(map(abs, changes)) <= margin else OPEN


def _size(one: Difference) -> float:
    return abs(one.shift) if one.ratio else abs(one.change or 0.0)


def _suspects(side: Side) -> list[str]:
    names = [one.name for one in side.samples if one.suspect]
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"suspect, so its figures may be wrong: {', '.join(names[:3])}{more}"]


def _measured(side: Side) -> str:
    """Returns up to five subjects of a side's judged figures as text, for the error that two sides
    share none.
    """
    names = dict.fromkeys(key[1].words for one in side.samples for key in one.metrics if judged(*key))
    return f"[{'; '.join(list(names)[:5])}]" if names else "nothing"


def _one_sided(common: Sequence[Match], b: Side, a: Side) -> list[str]:
    """Returns a sentence for each side that has judged figures which the other one lacks; it names up to four
    subjects.
    """
    of = [
        {key for one in common for sample in getattr(one, side) for key in sample.metrics if judged(*key)}
        for side in ("a", "b")
    ]
    found = []
    for side, only in ((a, of[0] - of[1]), (b, of[1] - of[0])):
        if subjects := sorted({key[1].words or key[0] for key in only}):
            more = f" and {len(subjects) - 4} more" if len(subjects) > 4 else ""
            found.append(f"only {side.letter} measured: {'; '.join(subjects[:4])}{more}")
    return found
