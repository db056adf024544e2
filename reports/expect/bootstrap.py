"""Computes 95 % intervals of means and percentiles of the messages of one run by a block bootstrap.

Neighbouring messages wait in the same queues, so their times are correlated. Resampling whole blocks keeps
the correlation (circular block bootstrap: Politis and Romano, 1992).
"""

from __future__ import annotations

import math

import numpy as np

from reports.metrics.stats import CONFIDENCE, Estimate
from reports.metrics.stats import percentile as of_ranks

Values = np.ndarray[tuple[int], np.dtype[np.float64]]
RESAMPLES = 1000
FEWEST_RESAMPLES = 200  # of very many messages
MOST_DRAWN = 200_000_000  # values drawn for one interval: a few seconds
FEWEST = 20  # messages
FEWEST_BLOCKS = 5
SEED = 20  # the same run always gets the same interval


def interval(values: Values, q: float | None) -> Estimate:
    """The mean (`q` None) or the q-quantile of values in the order of sending, with its interval.

    The interval of a quantile contains that of order statistics, too: a sample cannot show values beyond its
    largest, so few messages give no upper bound of a high percentile.
    """
    n = len(values)
    value = statistic(values, q)
    if n < FEWEST:
        return Estimate(value, n, None, None, f"{n} messages are too few for an interval")
    block = block_length(values if q is None else (values > value).astype(np.float64))
    if n // block < FEWEST_BLOCKS:
        method = f"messages are correlated over {block} of {n}, too many for an interval"
        return Estimate(value, n, None, None, method)
    drawn = _resampled(values, q, block)
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(one) for one in np.quantile(drawn, (tail, 1 - tail)))
    method = f"block bootstrap, {len(drawn)} resamples of blocks of {block} messages"
    if q is None:
        return Estimate(value, n, low, high, method)
    ranks = of_ranks(np.sort(values), q)
    least = None if ranks.low is None else min(low, ranks.low)
    most = None if ranks.high is None else max(high, ranks.high)
    return Estimate(value, n, least, most, f"{method}, with order statistics")


def statistic(values: Values, q: float | None) -> float:
    """The mean, or the q-quantile (nearest rank)."""
    if q is None:
        return float(np.mean(values))
    place = max(0, math.ceil(q * len(values)) - 1)
    return float(np.partition(values, place)[place])


def block_length(values: Values) -> int:
    """The length of blocks: twice the lag from which on autocorrelation is negligible (Politis and White,
    Econometric Reviews 23, 2004, section 3.2), and at least the cube root of the number of values.
    """
    n = len(values)
    least: int = math.ceil(n ** (1 / 3))
    centred = values - values.mean()
    variance = float(centred @ centred)
    if variance == 0:
        return least
    padded = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(np.abs(padded) ** 2)[: n // 2] / variance
    negligible = np.abs(correlation) < 2 * math.sqrt(math.log10(n) / n)
    run_of = max(5, math.ceil(math.sqrt(math.log10(n))))
    for lag in range(1, len(negligible) - run_of):
        if negligible[lag : lag + run_of].all():
            return max(least, 2 * (lag - 1))
    return n


def _resampled(values: Values, q: float | None, block: int) -> Values:
    """The statistic of each resample."""
    n, random = len(values), np.random.default_rng(SEED)
    times = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWN // n))
    circle = np.concatenate((values, values[: block - 1]))
    offsets = np.arange(block)
    found = np.empty(times)
    for number in range(times):
        starts = random.integers(0, n, size=math.ceil(n / block))
        drawn = circle[(starts[:, None] + offsets).ravel()[:n]]
        found[number] = statistic(drawn, q)
    return found
