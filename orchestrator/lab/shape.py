"""Compares the distribution of measured delays with the user's table of delays."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from orchestrator.lab.judgement import shown

QUANTILES = (0.5, 0.9, 0.99)


def expected_ns(delay_ns: int, jitter_ns: int, table: Sequence[int], sending_ns: int) -> list[float]:
    """Returns the equally likely delays (ns) of a frame, sorted, one for each entry of the table as netem
    scales it (tabledist in net/sched/sch_netem.c), plus the sending time.
    """
    return sorted(delay_ns + jitter_ns * entry / 8192 + sending_ns for entry in table)


def distance(seen: Sequence[float], wanted: Sequence[float], tolerance_ns: float = 0.0) -> float:
    """Returns the Kolmogorov-Smirnov distance (0 to 1) between the distributions of `seen` and of `wanted`,
    which must be sorted; differences of at most `tolerance_ns` do not count.
    """
    ordered, n, most = sorted(seen), len(seen), 0.0
    for rank, value in enumerate(ordered):
        below = bisect.bisect_right(wanted, value + tolerance_ns) / len(wanted)
        above = bisect.bisect_left(wanted, value - tolerance_ns) / len(wanted)
        most = max(most, (rank + 1) / n - below, above - rank / n)
    return most


def critical(n: float, z: float) -> float:
    """Returns the distance that n independent values exceed at most as often as a normal value exceeds z
    standard deviations (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant, 1990).
    """
    return math.sqrt(math.log(2 / math.erfc(z / math.sqrt(2))) / (2 * n))


def quantiles(seen: Sequence[float], wanted: Sequence[float]) -> str:
    """Returns the 50th, 90th and 99th percentiles as text, such as `p50 12.1 ms (12 ms requested), ...`."""
    ordered = sorted(seen)

    def at(values: Sequence[float], share: float) -> str:
        return shown("ns", values[min(len(values) - 1, int(share * len(values)))])

    return ", ".join(f"p{100 * q:.0f} {at(ordered, q)} ({at(wanted, q)} requested)" for q in QUANTILES)
