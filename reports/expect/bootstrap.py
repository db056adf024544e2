"""Computes 95 % intervals of means and percentiles of the messages of one run by a block bootstrap.

Neighbouring messages wait in the same queues, so their times are correlated. Resampling whole blocks keeps
the correlation (circular block bootstrap: Politis and Romano, 1992). If the values are correlated for too
long to resample them together, the values between two events of the timeline are resampled by themselves,
because a second run would have the same events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reports.metrics.stats import CONFIDENCE, Estimate
from reports.metrics.stats import percentile as of_ranks

Values = np.ndarray[tuple[int], np.dtype[np.float64]]
RESAMPLES = 1000
FEWEST_RESAMPLES = 200  # least number of resamples, even with very many messages
MOST_DRAWN = 200_000_000  # largest number of values drawn for one interval, which takes a few seconds
FEWEST = 20  # least number of messages
FEWEST_BLOCKS = 5
BATCHES = 10  # number of long blocks; their means show whether correlation adds to the scatter
SEED = 20  # the same run always gets the same interval


@dataclass(frozen=True)
class Part:
    """Messages that are resampled by themselves, in blocks of `block` messages."""

    values: Values
    block: int


def interval(values: Values, q: float | None, flows: int = 1, borders: Sequence[int] = ()) -> Estimate:
    """Returns the mean (`q` None) or the q-quantile of values in the order of sending, with its interval.

    `flows` of messages alternate in the values; `borders` has the indices where an event begins or ends. The
    interval of a quantile contains that of order statistics, too: a sample cannot show values beyond its
    largest, so a small sample gives no upper bound of a high percentile. Without an interval, both ends are
    None and the method has the reason.
    """
    n = len(values)
    value = statistic(values, q)
    if n < FEWEST:
        return Estimate(value, n, None, None, f"{n} messages are too few for an interval")
    marks = values if q is None else (values > value).astype(np.float64)
    for cuts in ([0, n], sorted({0, *borders, n})):
        parts = [
            Part(values[start:end], block_length(marks[start:end], flows)) for start, end in pairwise(cuts)
        ]
        steady = [part for part in parts if len(part.values) // part.block >= FEWEST_BLOCKS]
        if steady and (len(steady) == len(parts) or q is not None):
            return _estimate(values, value, q, steady, between=len(parts) > 1)
    return _correlated(value, n)


def _correlated(value: float, n: int) -> Estimate:
    method = f"messages are correlated over more than {n // FEWEST_BLOCKS} of {n}, too many for an interval"
    return Estimate(value, n, None, None, method)


def _estimate(values: Values, value: float, q: float | None, steady: list[Part], between: bool) -> Estimate:
    n, tail = len(values), (1 - CONFIDENCE) / 2
    lows, highs = _resampled(steady, q, n)
    low, high = (
        float(np.quantile(lows, tail, method="lower")),
        float(np.quantile(highs, 1 - tail, method="higher")),
    )
    blocks = sorted({part.block for part in steady})
    length = f"{blocks[0]}" if len(blocks) == 1 else f"{blocks[0]} to {blocks[-1]}"
    method = (
        f"block bootstrap{' between events' * between}, {len(lows)} resamples of blocks of {length} messages"
    )
    if q is None:
        return Estimate(value, n, low, high, method)
    ranks = of_ranks(np.sort(values), q)
    least = None if ranks.low is None or math.isinf(low) else min(low, ranks.low)
    most = None if ranks.high is None or math.isinf(high) else max(high, ranks.high)
    if least is None and most is None:
        return _correlated(value, n)
    return Estimate(value, n, least, most, f"{method}, with order statistics")


def statistic(values: Values, q: float | None) -> float:
    """Returns the mean (`q` None), or the q-quantile by nearest rank."""
    if q is None:
        return float(np.mean(values))
    return _at(values, math.ceil(q * len(values)) - 1)


def _at(values: Values, place: int) -> float:
    """Returns the value at a place (from 0) in ascending order; minus infinity before the first, infinity
    after the last.
    """
    if place < 0:
        return -math.inf
    return float(np.partition(values, place)[place]) if place < len(values) else math.inf


def block_length(values: Values, flows: int = 1) -> int:
    """Returns the length of blocks: twice the lag from which on autocorrelation is negligible (Politis and
    White, Econometric Reviews 23, 2004, section 3.2), and at least the cube root of the number of values.

    The lag counts if autocorrelation stays negligible at several lags in a row, more of them than `flows`:
    messages of one flow can be correlated, and those of two flows not. A pattern that repeats is correlated
    at all lags, but long blocks of it are alike; blocks are then a tenth of the values.
    """
    n = len(values)
    least: int = math.ceil(n ** (1 / 3))
    centred = values - values.mean()
    variance = float(centred @ centred)
    if n < FEWEST or variance == 0:
        return least
    padded = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(np.abs(padded) ** 2)[: n // 2] / variance
    large = np.abs(correlation) >= 2 * math.sqrt(math.log10(n) / n)
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(n))), flows + 1)
    counted = np.cumsum(large)
    # lags from which on the correlation stays below its noise
    silent = np.flatnonzero(counted[in_a_row:] == counted[:-in_a_row])
    found = max(least, 2 * int(silent[0])) if len(silent) else n
    return found if n // found >= FEWEST_BLOCKS or not _alike(values) else n // BATCHES


def _alike(values: Values) -> bool:
    """Returns whether the means of ten long blocks scatter no more than those of independent values."""
    means = [float(batch.mean()) for batch in np.array_split(values, BATCHES)]
    return float(np.var(means, ddof=1)) <= float(np.var(values, ddof=1)) / (len(values) / BATCHES)


def _resampled(parts: Sequence[Part], q: float | None, n: int) -> tuple[Values, Values]:
    """Returns the lowest and the highest possible statistic of each resample. They differ if `n` is larger
    than the number of values in `parts`: the missing values count as smaller than all, or as larger than all.
    """
    random = np.random.default_rng(SEED)
    known = sum(len(part.values) for part in parts)
    times = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWN // n))
    circles = [np.concatenate((part.values, part.values[: part.block - 1])) for part in parts]
    lows, highs = np.empty(times), np.empty(times)
    for number in range(times):
        drawn = np.concatenate(
            [_drawn(part, circle, random) for part, circle in zip(parts, circles, strict=True)]
        )
        if q is None:
            lows[number] = highs[number] = np.mean(drawn)
            continue
        place = math.ceil(q * n) - 1
        highs[number] = _at(drawn, place)
        lows[number] = highs[number] if known == n else _at(drawn, place - (n - known))
    return lows, highs


def _drawn(part: Part, circle: Values, random: np.random.Generator) -> Values:
    """Returns one resample of a part; `circle` has its values with the first ones again at the end."""
    n = len(part.values)
    starts = random.integers(0, n, size=math.ceil(n / part.block))
    drawn: Values = circle[(starts[:, None] + np.arange(part.block)).ravel()[:n]]
    return drawn
