"""Reads the output of wrk and wrk2: requests, statuses, socket errors, latency percentiles and rates.

Formats: print_stats and main of wrk's and wrk2's src/wrk.c. Both print percentiles only with `--latency`.
With `--u_latency`, wrk2 prints two lists of percentiles; the first one, which is corrected for delayed
starts, is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.programs.percentiles import printed
from reports.programs.reading import Figure, find, ms, need, size_bytes

_TIME = r"([0-9.]+(?:us|ms|s|m|h))"
_LATENCY = re.compile(rf"^\s+Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+[0-9.]+%")
_PERCENTILE = re.compile(rf"^\s*([0-9.]+)%\s+{_TIME}\s*$")
_TOTAL = re.compile(r"^\s*([0-9]+) requests in ([0-9.]+(?:us|ms|s|m|h)), ([0-9.]+[KMGT]?B) read")
_BAD = re.compile(r"^\s*Non-2xx or 3xx responses: ([0-9]+)")
_ERRORS = re.compile(r"^\s*Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)")
# wrk2 does not count the first 10 s in its percentiles
_COUNTED = re.compile(r"Total count\s+=\s+([0-9]+)\]")
_RATE = re.compile(r"^Requests/sec:\s+([0-9.]+)")


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the output; raises UnreadError if the line of totals is missing."""
    at, total = need(lines, _TOTAL, "no line `N requests in TIME, SIZE read` of wrk")
    n, seconds = int(total[1]), ms(total[2]) / 1e3
    figures = [Figure("requests", n, at, n), Figure("bytes", size_bytes(total[3]) / 1e6, at, n)]
    if seconds > 0:
        figures.append(Figure("throughput", 8e-6 * size_bytes(total[3]) / seconds, at, n))
    figures += [Figure("rate", float(found[1]), line, n) for line, found in find(lines, _RATE)]
    return [*figures, *_answers(lines, n, at), *_latency(lines, n)]


def _answers(lines: Sequence[str], n: int, at: int) -> list[Figure]:
    """Returns the requests without an answer, and those whose status is neither 2xx nor 3xx."""
    bad = next(((int(found[1]), line) for line, found in find(lines, _BAD)), (0, at))
    errors = next(((sum(map(int, found.groups())), line) for line, found in find(lines, _ERRORS)), (0, at))
    return [Figure("refused", *bad, n), Figure("failed", *errors, n + errors[0])]


def _latency(lines: Sequence[str], n: int) -> list[Figure]:
    figures, largest = [], None
    n = next((int(found[1]) for _, found in find(lines, _COUNTED)), n)
    for line, found in find(lines, _LATENCY):
        mean, deviation, largest = (ms(found[i]) for i in (1, 2, 3))
        named = {"mean": mean, "deviation": deviation, "max": largest}
        figures += [Figure(f"latency_{name}", value, line, n) for name, value in named.items()]
        break
    shares: dict[float, tuple[float, int]] = {}
    for line, found in find(lines, _PERCENTILE):
        shares.setdefault(round(float(found[1]) / 100, 6), (ms(found[2]), line))
    return [*figures, *printed(shares, n, largest=largest)]
