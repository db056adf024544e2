"""Defines the verdicts of claims, values with intervals, and the comparisons that several rules share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from contract.verdict import FAILS, GIVEN, HOLDS, OPEN
from contract.verdict import Verdict as Word
from reports.numbers import measured

__all__ = ["FAILS", "GIVEN", "HOLDS", "OPEN", "Judgement", "Value", "Word"]


@dataclass(frozen=True)
class Judgement:
    """A verdict, and a sentence with the numbers that led to it."""

    verdict: Word
    reason: str


@dataclass(frozen=True)
class Value:
    """A measured value with its 95 % interval; `low` and `high` are None if it has none."""

    value: float
    low: float | None
    high: float | None
    unit: str
    method: str = ""

    @property
    def half(self) -> float | None:
        """The half width of the interval, the larger side if the interval is not symmetric; None without an
        interval.
        """
        if self.low is None or self.high is None:
            return None
        return max(self.high - self.value, self.value - self.low)

    def __str__(self) -> str:
        return f"{self.bare} {self.unit}"

    @property
    def bare(self) -> str:
        """The number and its interval, without the unit."""
        return measured(self.value, self.low, self.high, self.method)


def needs(what: str) -> Judgement:
    """Returns the verdict "cannot tell" because `what` was not measured."""
    return Judgement(OPEN, f"needs {what}")


def positive(terms: Sequence[tuple[float, Value]], reason: str) -> Judgement:
    """Judges whether a weighted sum of independent values is above zero, by the interval of the sum: "cannot
    tell" if zero is inside.

    The half widths add in squares. If a value has no interval, the verdict is "cannot tell", too.
    """
    total = math.fsum(weight * v.value for weight, v in terms)
    halves = [None if v.half is None else weight * v.half for weight, v in terms]
    if any(h is None for h in halves):
        return Judgement(OPEN, f"{reason}; no interval is known, so it needs more runs")
    half = math.sqrt(math.fsum(h * h for h in halves if h is not None))
    if total > half:
        return Judgement(HOLDS, reason)
    if total < -half:
        return Judgement(FAILS, reason)
    return Judgement(
        OPEN, f"{reason}; the difference is within the 95 % interval, so it needs longer or more runs"
    )


def within(value: float, low: float, high: float, reason: str) -> Judgement:
    """Returns the verdict "holds" if the value is from `low` to `high`, both included, else "fails"."""
    return Judgement(HOLDS if low <= value <= high else FAILS, reason)


def together(parts: Sequence[tuple[str, Judgement]]) -> Judgement:
    """Returns one verdict for several parts: fails if a part fails, else "cannot tell" if a part does, else
    holds. The reason lists each part's label and reason, and its verdict if the verdicts differ.
    """
    words = [j.verdict for _, j in parts]
    verdict = FAILS if FAILS in words else OPEN if OPEN in words else HOLDS
    mixed = len(set(words)) > 1
    texts = [f"{label}: {j.reason}" + (f" ({j.verdict})" if mixed else "") for label, j in parts]
    return Judgement(verdict, "; ".join(texts))
