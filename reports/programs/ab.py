"""Reads the output of ab (ApacheBench): requests, failures, percentiles in whole ms, rates.

Format: output_results of httpd's support/ab.c. If ab gives up, it prints no percentiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.programs.percentiles import printed
from reports.programs.reading import Figure, find, need

ROUNDED_MS = 0.5  # half of the last digit in ms, because ab prints whole ms
_COMPLETE = re.compile(r"^Complete requests:\s+([0-9]+)")
_COUNTS = {
    "failed": re.compile(r"^Failed requests:\s+([0-9]+)"),
    "refused": re.compile(r"^Non-2xx responses:\s+([0-9]+)"),
    "rate": re.compile(r"^Requests per second:\s+([0-9.]+)"),
}
_TOTAL = re.compile(r"^Total transferred:\s+([0-9]+) bytes")
_TOOK = re.compile(r"^Time taken for tests:\s+([0-9.]+) seconds")
_TIMES = re.compile(r"^Total:\s+([0-9]+)\s+([0-9]+)\s+([0-9.]+)\s+([0-9]+)\s+([0-9]+)")
_SHARE = re.compile(r"^\s+([0-9]+)%\s+([0-9]+)")


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the output; raises UnreadError without the number of requests."""
    at, complete = need(lines, _COMPLETE, "no line `Complete requests: N` of ab")
    n = int(complete[1])
    figures = [Figure("requests", n, at, n)]
    for name, pattern in _COUNTS.items():
        figures += [Figure(name, float(found[1]), line, n) for line, found in find(lines, pattern)]
    took = [float(found[1]) for _, found in find(lines, _TOOK)]
    for line, found in find(lines, _TOTAL):
        figures.append(Figure("bytes", int(found[1]) / 1e6, line, n))
        if took and took[0] > 0:
            figures.append(Figure("throughput", 8e-6 * int(found[1]) / took[0], line, n))
    for line, found in find(lines, _TIMES):
        for i, name in ((1, "min"), (2, "mean"), (3, "deviation"), (5, "max")):
            figures.append(Figure(f"latency_{name}", float(found[i]), line, n))
    shares = {int(found[1]) / 100: (float(found[2]), line) for line, found in find(lines, _SHARE)}
    return [*figures, *printed(shares, n, rounded_ms=ROUNDED_MS)]
