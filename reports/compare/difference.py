"""Computes the difference between two sets of values, paired or not, with an interval and a p-value.

Values that are all positive are compared by their ratio, because a change of 10 % means the same for a figure
of 5 ms and one of 500 ms. Counts, and figures with values of zero or below, are compared by subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from reports.metrics.stats import t_quantile

CONFIDENCE = 0.95
NOTHING = 1e-9  # values that vary by less than this share of their size differ only by rounding
# least number of equal values that count as values without scatter; two may be equal by chance
FEWEST_ALIKE = 3
MOST = 10_000  # largest number of repetitions that is predicted as needed


@dataclass(frozen=True)
class Difference:
    """The difference of side B from side A for one figure.

    `a` and `b` are the means of the compared values, `n` is the number of pairs, or of values of the smaller
    side. `shift` is the mean difference: of logarithms if `ratio`, else of values. `error` is its standard
    error with `degrees` of freedom, or None if the values are too few. `least` is the smallest p-value that
    so few values without scatter can have.
    """

    a: float
    b: float
    n: int
    shift: float
    error: float | None
    degrees: float
    ratio: bool
    method: str
    least: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the difference has an interval."""
        return self.error is not None

    @property
    def single(self) -> bool:
        """Whether one side has a single run, which does not show the scatter between runs."""
        return self.n < 2

    @property
    def p(self) -> float:
        """The probability of a shift at least so large in either direction if there is no difference. 1 if
        the error is unknown or the shift is 0; `least` if the values have no scatter.
        """
        if self.error is None or self.shift == 0:
            return 1.0
        if self.error == 0:
            return self.least
        return 2 * float(stdtr(self.degrees, -abs(self.shift) / self.error))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Returns the interval of the shift. None if the error is unknown, or if so few values without
        scatter cannot reach the confidence.
        """
        if self.error is None or (self.error == 0 and self.shift and self.least > 1 - confidence):
            return None
        half = self.error * t_quantile(0.5 + confidence / 2, self.degrees) if self.error else 0.0
        return self.shift - half, self.shift + half

    @property
    def change(self) -> float | None:
        """The relative change from A to B (0.1: 10 % more); None if A is not above zero and B differs."""
        return self.relative(self.shift)

    def changes(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Returns the interval of the relative change; None if the shift has no interval, or A is not above
        zero and the shift is not compared as a ratio.
        """
        found = self.interval(confidence)
        if found is None:
            return None
        low, high = map(self.relative, found)
        return None if low is None or high is None else (low, high)

    def relative(self, shift: float) -> float | None:
        """Returns a shift as relative change (0.1: 10 %); None for a subtraction if A is not above zero and
        the shift is not 0.
        """
        if self.ratio:
            return math.expm1(min(shift, 700.0))  # the largest exponent of a floating-point number
        if shift == 0:
            return 0.0
        return shift / self.a if self.a > 0 else None


def paired(a: Sequence[float], b: Sequence[float], count: bool = False, stepped: bool = False) -> Difference:
    """Returns the difference of pairs of values, with Student's t interval of the pairs' differences. A
    single pair has no interval.

    With `count`, the differences scatter at least as much as two Poisson distributions, so that counts that
    are equal by chance show no difference. `stepped` values (counts, shares of counts, ticks) can have equal
    differences by chance, so these count as in a sign test.
    """
    first, second, ratio = _scaled(a, b, count)
    gaps, n = second - first, len(a)
    what = "logarithms" if ratio else "values"
    method = f"paired t of {what}, {n} pair{'s' if n > 1 else ''}"
    found = Difference(_mean(a), _mean(b), n, float(gaps.mean()), None, n - 1, ratio, method)
    if n < 2:
        return found
    deviation = float(np.std(gaps, ddof=1))
    if count:
        deviation = max(deviation, math.sqrt(_mean(a) + _mean(b)))
    found = replace(found, least=_signs(n) if stepped else 0.0)
    return _with_error(found, deviation / math.sqrt(n), float(np.abs([first, second]).max()))


def apart(a: Sequence[float], b: Sequence[float], count: bool = False, stepped: bool = False) -> Difference:
    """Returns the difference of the means of two independent samples, with Welch's t interval. If a side has
    fewer than two values, it has no interval.

    With `count`, each side scatters at least as a Poisson distribution; equal `stepped` values count as in a
    sign test.
    """
    first, second, ratio = _scaled(a, b, count)
    n, what = min(len(a), len(b)), "logarithms" if ratio else "values"
    method = f"Welch's t of {what}, {len(a)} and {len(b)} runs, not paired"
    shift = float(second.mean() - first.mean())
    found = Difference(_mean(a), _mean(b), n, shift, None, 0, ratio, method)
    if n < 2:
        return found
    parts = []
    for values, mean in ((first, _mean(a)), (second, _mean(b))):
        square = float(np.var(values, ddof=1))
        parts.append((max(square, mean) if count else square) / len(values))
    squares = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    degrees = sum(parts) ** 2 / squares if squares > 0 else len(a) + len(b) - 2
    whole = replace(found, degrees=degrees, least=_signs(n) if stepped else 0.0)
    return _with_error(whole, math.sqrt(sum(parts)), float(max(np.abs(first).max(), np.abs(second).max())))


def none(a: Sequence[float], why: str) -> Difference:
    """Returns the difference 0 with error 0 for values that are known to be equal; `why` is the method."""
    return Difference(_mean(a), _mean(a), len(a), 0.0, 0.0, max(1, len(a) - 1), min(a) > 0, why)


def holm(values: Sequence[float]) -> list[float]:
    """Returns the p-values corrected for their number, in the same order (Holm, Scand. J.
    Statistics 6, 1979).
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    found, highest = [1.0] * len(values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        found[place] = highest
    return found


def repetitions(found: Difference, margin: float) -> int | None:
    """Returns the number of further repetitions after which half the 95 % interval is at most the margin (a
    share).

    None if more than MOST repetitions in all are needed, if the scatter is unknown or zero, or if A's mean is
    not above zero in a difference by subtraction.
    """
    wanted = math.log1p(margin) if found.ratio else margin * found.a
    if not found.error or found.n < 2 or wanted <= 0:
        return None
    deviation = found.error * math.sqrt(found.n)
    low, high = found.n, MOST
    if not _enough(deviation, high, wanted):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _enough(deviation, middle, wanted) else (middle + 1, high)
    return max(0, low - found.n)


def _enough(deviation: float, n: int, wanted: float) -> bool:
    return n >= 2 and deviation * t_quantile(0.5 + CONFIDENCE / 2, n - 1) / math.sqrt(n) <= wanted


def _scaled(
    a: Sequence[float], b: Sequence[float], count: bool
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]], bool]:
    """Returns both samples, as logarithms if all values are positive and are no counts, and whether they are
    logarithms.
    """
    ratio = not count and min(*a, *b) > 0
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return (np.log(first), np.log(second), True) if ratio else (first, second, False)


def _with_error(found: Difference, error: float, size: float) -> Difference:
    """Returns the difference with its standard error. An error below the share NOTHING of `size` is rounding
    and counts as no scatter.
    """
    if error > NOTHING * max(size, NOTHING):
        return replace(found, error=error)
    return _alike(found)


def _alike(found: Difference) -> Difference:
    """Returns the difference of values without scatter: with error 0, or without an interval if there are
    fewer than FEWEST_ALIKE values.
    """
    if found.n < FEWEST_ALIKE:
        return replace(found, method=f"{found.method}, no scatter")
    size = 1.0 if found.ratio else max(abs(found.a), abs(found.b), NOTHING)
    if abs(found.shift) <= NOTHING * size:
        return replace(found, shift=0.0, error=0.0, method=f"{found.method}, all equal")
    return replace(found, error=0.0, method=f"{found.method}, the same each time")


def _signs(n: int) -> float:
    """Returns the probability that n differences have the same sign by chance: the p-value of a sign test, at
    most 1.
    """
    return min(1.0, 2.0 ** (1 - n))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
