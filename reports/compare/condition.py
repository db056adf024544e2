"""Judges conditions on relative differences, such as `latency_p99[class=control] > +10 %`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract.chosen import COLUMNS, SHORT, column
from contract.verdict import FAILS, HOLDS, OPEN, Verdict
from reports.compare.comparison import FALSE_ALARM, Comparison, Row
from reports.compare.difference import Difference
from reports.compare.errors import CompareError, near
from reports.compare.figure import judged
from reports.compare.words import percent
from reports.metrics.metric import OF
from reports.numbers import plain

FORM = "METRIC[class=NAME] > +10 %"
SIGNS = ("above", "below")
PERCENTAGE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*%")
# fields of a subject, by their short names and by the names of the columns
NAMES = {**COLUMNS, **{field: field for field in OF}, SHORT: "guarantee"}


@dataclass(frozen=True)
class Limit:
    """A limit on a figure's relative difference (0.1: 10 %). A change beyond it fails: larger changes if
    `above`, else smaller ones. `subject` has the fields that a row must match.
    """

    text: str
    name: str
    subject: tuple[tuple[str, str], ...]
    above: bool
    change: float

    def selects(self, row: Row) -> bool:
        name, of = row.key
        return name == self.name and all(str(getattr(of, field)) == value for field, value in self.subject)


@dataclass(frozen=True)
class Outcome:
    """The verdict of a limit for one row: fails if the whole interval is beyond the limit, holds if none of
    it is, else "cannot tell".
    """

    limit: Limit
    row: Row
    verdict: Verdict
    reason: str


def limit(text: str, stated: Mapping[str, Any]) -> Limit:
    """The limit of a condition, given as the mapping that its text means in a topology file.

    CompareError if it is not a percentage of one figure.
    """
    signs = [sign for sign in SIGNS if sign in stated]
    found = PERCENTAGE.fullmatch(str(stated[signs[0]])) if len(signs) == 1 else None
    if found is None or "metric" not in stated:
        raise CompareError(f"--fail-if {text!r}: is no limit of a difference; write it as '{FORM}'")
    subject = [(key, value) for key, value in stated.items() if key not in ("metric", *signs)]
    for key, _ in subject:
        if key not in NAMES:
            raise CompareError(f"--fail-if {text!r}: no subject is called {key!r}; {near(key, NAMES)}")
    named = tuple(column(key, value) or (NAMES[key], str(value)) for key, value in subject)
    return Limit(text.strip(), stated["metric"], named, signs[0] == "above", float(found[1]) / 100)


def judge(limits: Sequence[Limit], one: Comparison) -> list[Outcome]:
    """Returns the verdict of each limit for each row that it selects; CompareError if a limit selects none.

    Each interval is wide enough that all verdicts hold together with 95 % (Bonferroni).
    """
    chosen = [(limit, row) for limit in limits for row in _selected(limit, one)]
    confidence = 1 - FALSE_ALARM / max(1, len(chosen))
    return [_outcome(limit, row, confidence) for limit, row in chosen]


def _selected(limit: Limit, one: Comparison) -> list[Row]:
    named = [row for row in (*one.rows, *_lonely(one)) if row.key[0] == limit.name]
    if not named:
        remedy = near(limit.name, {row.key[0] for row in one.rows})
        raise CompareError(f"--fail-if {limit.text!r}: no side measured {limit.name!r}; {remedy}")
    found = [row for row in named if limit.selects(row)]
    if not found:
        said = f"--fail-if {limit.text!r}: {limit.name} has no such subject"
        for field, value in limit.subject:
            known = {str(one) for row in named if (one := getattr(row.key[1], field)) is not None}
            if value not in known and known:
                raise CompareError(f"{said}: no {_called(field)} is {value!r}; {near(value, known)}")
        subjects = list(dict.fromkeys(row.key[1].words for row in named))
        raise CompareError(f"{said}; it has: {'; '.join(subjects[:8])}")
    return found


def _lonely(one: Comparison) -> Iterator[Row]:
    """Yields a row without an interval for each judged figure that only one side of a condition measured,
    such as the latency of a class that lost all its messages.
    """
    for match in one.matches:
        units = [{key: m.unit for s in side for key, m in s.metrics.items()} for side in (match.a, match.b)]
        for letter, here, there in zip(match.letters, units, reversed(units), strict=True):
            for key in here:
                if key not in there and judged(*key):
                    none = Difference(
                        math.nan, math.nan, 0, 0.0, None, 0, False, f"only {letter} measured it"
                    )
                    yield Row(key, here[key], match.name, *match.letters, none)


def _called(field: str) -> str:
    """Returns the first name of a field of a subject in conditions: class for traffic_class."""
    return next(name for name, known in NAMES.items() if known == field)


def _outcome(limit: Limit, row: Row, confidence: float) -> Outcome:
    changes = row.difference.changes(confidence)
    if changes is None:
        return _without_percentage(limit, row, confidence)
    low, high = changes if limit.above else (-changes[1], -changes[0])
    bound = limit.change if limit.above else -limit.change
    verdict: Verdict = FAILS if low > bound else HOLDS if high <= bound else OPEN
    ends = " to ".join(f"{'-' if end < 0 else '+'}{percent(end)}" for end in changes)
    return Outcome(
        limit, row, verdict, f"{row.what}: {row.b} against {row.a}: {ends} % ({100 * confidence:.4g} %)"
    )


def _without_percentage(limit: Limit, row: Row, confidence: float) -> Outcome:
    """Returns the verdict without a relative difference. An increase from zero is beyond every percentage."""
    one = row.difference
    found = one.interval(confidence)
    if found is None or one.a != 0:
        return Outcome(limit, row, OPEN, f"{row.what}: no interval ({one.method})")
    low, high = found
    verdict: Verdict = OPEN if low <= 0 else FAILS if limit.above else HOLDS
    ends = f"{plain(low)} to {plain(high)} {row.unit} ({100 * confidence:.4g} %)"
    return Outcome(limit, row, verdict, f"{row.what}: zero in {row.a}, and in {row.b} more by {ends}")
