"""Turns percentiles that a program printed, or its single times, into figures with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reports.expect import bootstrap
from reports.metrics.stats import CONFIDENCE, binomial_quantile
from reports.programs.reading import Figure

NAMES = {0.5: "p50", 0.75: "p75", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99.9"}
BETWEEN = "as printed; interval between the printed percentiles that contain it"


def printed(
    found: Mapping[float, tuple[float, int]],
    n: int,
    part: str = "",
    largest: float | None = None,
    rounded_ms: float = 0.0,
) -> list[Figure]:
    """Returns the figures of percentiles that a program printed: share (0 to 1) -> (ms, line); `n` is the
    number of requests, `largest` the largest of all times, `rounded_ms` by how much the program rounds at
    most.

    The interval of a percentile follows from the binomial distribution of ranks. Its ends lie between two of
    the printed percentiles, so the interval here reaches to the next ones outside, and has no end where none
    is printed. So the interval is never too short. Like the one of order statistics, it holds for independent
    requests.
    """
    known = {share: value for share, (value, _) in found.items()}
    if largest is not None:
        known[1.0] = largest
    return [
        Figure(
            f"latency_{NAMES[share]}", value, line, n, *_interval(known, share, n, rounded_ms), part, BETWEEN
        )
        for share, (value, line) in sorted(found.items())
        if share in NAMES
    ]


def _interval(
    known: Mapping[float, float], share: float, n: int, rounded_ms: float
) -> tuple[float | None, float | None]:
    if n < 1:
        return None, None
    low, high = (binomial_quantile((1 + side * CONFIDENCE) / 2, n, share) for side in (-1, 1))
    under = [value - rounded_ms for at, value in known.items() if at * n <= low and at < share]
    over = [value + rounded_ms for at, value in known.items() if at * n >= high + 1]
    return max(under, default=None), min(over, default=None)


def measured(times_ms: Sequence[float], line: int, part: str = "") -> list[Figure]:
    """Returns mean, deviation, smallest, largest and percentiles of the times of single requests, in the
    order of the log, with the intervals of a block bootstrap. `line` is the number of the last line with a
    time. Empty without times.
    """
    if not times_ms:
        return []
    values = np.asarray(times_ms, dtype=np.float64)
    n = len(values)
    plain = {"min": values.min(), "max": values.max(), "deviation": values.std()}
    figures = [Figure(f"latency_{name}", float(v), line, n, part=part) for name, v in plain.items()]
    for share, name in ((None, "mean"), *NAMES.items()):
        made = bootstrap.interval(values, share)
        figures.append(Figure(f"latency_{name}", made.value, line, n, made.low, made.high, part, made.method))
    return figures
