"""Confidence intervals with the standard library only, light enough for the lab's kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence


def normal_quantile(p: float) -> float:
    """The z below which a standard normal value falls with probability `p`, by bisection on erfc."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(-middle / math.sqrt(2)) / 2 < p else (low, middle)
    return (low + high) / 2


def z_for(tests: int, family_error: float = 0.01) -> float:
    """The z at which all of `tests` two-sided intervals hold at once but for `family_error` (Bonferroni)."""
    return normal_quantile(1 - family_error / (2 * max(1, tests)))


def wilson(hits: float, n: float, z: float) -> tuple[float, float]:
    """Wilson score interval of a proportion (Wilson 1927); `n` may be an effective, fractional number."""
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float], z: float, correlation: float = 0.0) -> tuple[float, float, float]:
    """(mean, low, high); `correlation` of neighbours shrinks the effective number of values."""
    mean, deviation = moments(values)
    half = z * deviation / math.sqrt(effective(len(values), correlation))
    return mean, mean - half, mean + half


def median_interval(values: Sequence[float], z: float) -> tuple[float, float, float]:
    """(median, low, high) by order statistics."""
    ordered = sorted(values)
    last = len(ordered) - 1
    half = z * math.sqrt(0.25 / len(ordered))

    def at(share: float) -> float:
        return ordered[round(min(1.0, max(0.0, share)) * last)]

    return at(0.5), at(0.5 - half), at(0.5 + half)


def deviation_interval(
    values: Sequence[float], z: float, correlation: float = 0.0
) -> tuple[float, float, float]:
    """(standard deviation, low, high), large-sample: its own standard error is about s / sqrt(2n)."""
    _, deviation = moments(values)
    half = z * deviation / math.sqrt(2 * effective(len(values), correlation))
    return deviation, max(0.0, deviation - half), deviation + half


def quartile_range(values: Sequence[float], z: float, correlation: float = 0.0) -> tuple[float, float, float]:
    """(distance of the quartiles, low, high) by order statistics: the few that came late do not matter."""
    ordered = sorted(values)
    last = len(ordered) - 1
    half = z * math.sqrt(0.25 * 0.75 / effective(len(ordered), correlation))

    def at(share: float) -> float:
        return ordered[round(min(1.0, max(0.0, share)) * last)]

    low = at(0.75 - half) - at(0.25 + half)
    return at(0.75) - at(0.25), max(0.0, low), at(0.75 + half) - at(0.25 - half)


def moments(values: Sequence[float]) -> tuple[float, float]:
    """(mean, sample standard deviation)."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def effective(n: int, correlation: float) -> float:
    """Number of independent values that `n` values of a first-order correlated series are
    worth (at least 2).
    """
    return max(2.0, n * (1 - correlation) / (1 + correlation))
