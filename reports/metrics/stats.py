"""Computes means, ratios and percentiles with 95 % intervals: batch means of time series, order statistics, t
and Poisson intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrik, chdtrc, chdtri, stdtrit  # scipy.stats would take a second to load

BATCHES = 10  # batches of a hold; ten give t(9) = 2.26, and each stays long compared with the correlation
FEWEST_BATCHES = 5
CONFIDENCE = 0.95
SCATTERED = 0.01  # probability below which the scatter of counts is too large for a Poisson distribution
POISSON = "mean count"  # the first words of the method of a Poisson interval


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; `method` describes the computation. Without an interval, low and high
    are None; one of them alone is None if the interval has no end on that side.
    """

    value: float
    n: int
    low: float | None
    high: float | None
    method: str


def t_quantile(p: float, degrees: float) -> float:
    """Returns the p-quantile of Student's t distribution."""
    return float(stdtrit(degrees, p))


def binomial_quantile(p: float, n: int, chance: float) -> int:
    """Returns the smallest number k for which n trials, each with success probability `chance`, give at most
    k successes with probability p or more.
    """
    # quantile of the continuous distribution, which differs by at most one
    near = max(0, math.ceil(bdtrik(p, n, chance)))
    if bdtr(near, n, chance) < p:
        return near + 1
    return near - 1 if near and bdtr(near - 1, n, chance) >= p else near


def t_interval(values: Sequence[float], what: str) -> Estimate:
    """Returns the mean with Student's t interval over independent values, which `what` names; no interval for
    a single value.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Estimate(mean, n, None, None, f"mean; one {what}, so no interval")
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    half = t_quantile(0.5 + CONFIDENCE / 2, n - 1) * error
    return Estimate(mean, n, mean - half, mean + half, f"mean, t interval over {n} {what}s")


def poisson_interval(counts: Sequence[float], what: str) -> Estimate:
    """Returns the mean of independent counts with the exact interval of a Poisson distribution; no interval
    for a single count.

    The interval never goes below zero, and counts that are all zero have one (Garwood, Biometrika 28, 1936:
    chi-square quantiles of the sum). If the counts scatter more than the distribution allows, as bursts of
    losses do, the interval widens accordingly (quasi-Poisson; McCullagh and Nelder, Generalized Linear
    Models, 1989, section 6.2.3).
    """
    n, total = len(counts), math.fsum(counts)
    if n < 2:
        return Estimate(total / n, n, None, None, f"{POISSON}; one {what}, so no interval")
    mean = total / n
    scatter = math.fsum((x - mean) ** 2 for x in counts) / mean if mean else 0.0  # chi-square(n - 1)
    wide = chdtrc(n - 1, scatter) < SCATTERED
    times = scatter / (n - 1) if wide else 1.0
    tail, of = (1 - CONFIDENCE) / 2, total / times
    low = times * float(chdtri(2 * of, 1 - tail)) / 2 if total else 0.0
    high = times * float(chdtri(2 * of + 2, tail)) / 2
    law = f"Poisson interval, {times:.3g} times as scattered," if wide else "exact Poisson interval"
    return Estimate(mean, n, low / n, high / n, f"{POISSON}, {law} over {n} {what}s")


def batch_means(values: Sequence[float]) -> Estimate:
    """Returns the mean of a time series with a t interval over the means of batches, because neighbouring
    samples are correlated.

    There are ten batches, or fewer of at least two samples each; no interval for fewer than five.
    """
    n = len(values)
    mean = math.fsum(values) / n
    batches = min(BATCHES, n // 2)
    if batches < FEWEST_BATCHES:
        return Estimate(mean, n, None, None, f"mean; {n} samples are too few for {FEWEST_BATCHES} batches")
    means = [float(np.mean(batch)) for batch in np.array_split(np.asarray(values, dtype=float), batches)]
    spread = t_interval(means, "batch mean")
    half = (spread.high or 0.0) - spread.value
    return Estimate(mean, n, mean - half, mean + half, f"mean, t interval over {batches} batch means")


def ratio_batches(top: Sequence[float], bottom: Sequence[float]) -> Estimate:
    """Returns sum(top) / sum(bottom) with a t interval over the ratios of the batches, cut to 0 to 1; `n` is
    sum(bottom).

    Batches whose bottom is zero are left out; no interval if fewer than BATCHES remain.
    """
    total = math.fsum(bottom)
    value = math.fsum(top) / total
    ratios = [a / b for a, b in zip(top, bottom, strict=True) if b > 0]
    if len(ratios) < BATCHES:
        return Estimate(value, int(total), None, None, f"ratio of sums; {len(ratios)} batches are too few")
    spread = t_interval(ratios, "batch ratio")
    half = (spread.high or 0.0) - spread.value
    method = f"ratio of sums, t interval over {len(ratios)} batch ratios, within [0, 1]"
    return Estimate(value, int(total), max(0.0, value - half), min(1.0, value + half), method)


def percentile(ordered: np.ndarray[tuple[int], np.dtype[np.float64]], q: float) -> Estimate:
    """Returns the q-quantile (nearest rank) of sorted values, with an interval from the binomial distribution
    of ranks. An end of the interval whose rank lies outside the values is None.
    """
    n = len(ordered)
    value = float(ordered[max(0, math.ceil(q * n) - 1)])
    low, high = (binomial_quantile((1 + side * CONFIDENCE) / 2, n, q) for side in (-1, 1))
    high += 1
    return Estimate(
        value,
        n,
        float(ordered[low - 1]) if low >= 1 else None,
        float(ordered[high - 1]) if high <= n else None,
        "nearest rank, interval of order statistics (binomial)",
    )
