"""Computes confidence intervals, and how many frames a proof needs until they can decide.

Uses the standard library only, to be light enough for the lab's kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

ENOUGH = 30  # with fewer frames no share or spread is judged
# The part of a tolerance that an interval may fill; the rest allows for an error of its middle.
ROOM = 0.7
# If n frames could not decide: the part of the distance to the tolerance's edge to aim at, and the least
# growth of n.
NEARLY, AGAIN = 0.9, 1.3


def normal_quantile(p: float) -> float:
    """Returns the z below which a standard normal value falls with probability `p`, by bisection on erfc."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(-middle / math.sqrt(2)) / 2 < p else (low, middle)
    return (low + high) / 2


def z_for(tests: int, family_error: float = 0.01) -> float:
    """Returns the z at which all of `tests` two-sided intervals hold at once, except with probability
    `family_error` (Bonferroni).
    """
    return normal_quantile(1 - family_error / (2 * max(1, tests)))


def wilson(hits: float, n: float, z: float) -> tuple[float, float]:
    """Returns (low, high), the Wilson score interval of a proportion (Wilson 1927); `n` may be a fractional,
    effective number of values.
    """
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float], z: float, correlation: float = 0.0) -> tuple[float, float, float]:
    """Returns (mean, low, high). The `correlation` of neighbouring values reduces the effective number of
    values.
    """
    mean, deviation = moments(values)
    half = z * deviation / math.sqrt(effective(len(values), correlation))
    return mean, mean - half, mean + half


def median_interval(values: Sequence[float], z: float) -> tuple[float, float, float]:
    """Returns (median, low, high); the interval is computed from order statistics."""
    ordered = sorted(values)
    last = len(ordered) - 1
    half = z * math.sqrt(0.25 / len(ordered))

    def at(share: float) -> float:
        return ordered[round(min(1.0, max(0.0, share)) * last)]

    return at(0.5), at(0.5 - half), at(0.5 + half)


def deviation_interval(
    values: Sequence[float], z: float, correlation: float = 0.0
) -> tuple[float, float, float]:
    """Returns (standard deviation, low, high) for large samples. The standard error is s sqrt((k - 1) / 4n),
    where k is the kurtosis of the values (Cramer 1946, 28.2): 1.8 for a uniform law, 3 for a normal one.
    """
    mean, deviation = moments(values)
    fourth = math.fsum((v - mean) ** 4 for v in values) / len(values)
    kurtosis = fourth / deviation**4 if deviation else 3.0
    half = z * deviation * math.sqrt((kurtosis - 1) / (4 * effective(len(values), correlation)))
    return deviation, max(0.0, deviation - half), deviation + half


def quartile_range(
    values: Sequence[float], z: float, error: float, correlation: float = 0.0
) -> tuple[float, float, float]:
    """Returns (distance of the quartiles, low, high); a few late values hardly change this distance.

    error: the standard error as a share of the distance, times the root of n. It depends on the law of the
    values: sqrt((2 x 3/16 - 2 x 1/16) / f^2) / distance for a density f at both quartiles (Cramer 1946,
    28.5).
    """
    ordered = sorted(values)
    last = len(ordered) - 1
    found = ordered[round(0.75 * last)] - ordered[round(0.25 * last)]
    half = z * error * found / math.sqrt(effective(len(ordered), correlation))
    return found, max(0.0, found - half), found + half


def moments(values: Sequence[float]) -> tuple[float, float]:
    """Returns (mean, sample standard deviation) of the values."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def effective(n: int, correlation: float) -> float:
    """Returns the number of independent values that are worth as much as `n` values of a series with
    first-order correlation (at least 2).
    """
    return max(2.0, n * (1 - correlation) / (1 + correlation))


def needed(n: int, half: float, tolerance: float) -> int | None:
    """Returns the number of frames whose interval fills the part ROOM of the tolerance, given that the
    interval of n frames is +- `half`; None if the tolerance is 0.
    """
    return math.ceil(n * (half / (ROOM * tolerance)) ** 2) if tolerance else None


def more(n: int, half: float, tolerance: float, away: float, needs: int | None) -> int | None:
    """Returns the number of frames for the next attempt, if n frames could not decide. It is `needs` (or
    `needed`, if that is None or 0) if that number is above AGAIN times n. Otherwise it is AGAIN to 4 times n,
    the more the closer the measured value is to the tolerance's edge.

    away: distance of the measured value from the expected one; half: half the interval of n frames.
    """
    before = needs or needed(n, half, tolerance) or 0
    if before > AGAIN * n:
        return before
    edge = max(abs(tolerance - away), half / 4)
    return math.ceil(n * min(4.0, max(AGAIN, (half / (NEARLY * edge)) ** 2)))
