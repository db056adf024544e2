"""Reads the output of h2load (nghttp2): requests, statuses, failures, times and rates.

h2load prints smallest, largest and mean times, and no percentiles; newer versions print some percentiles of
each client. Format: the end of main in nghttp2's src/h2load.cc.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.programs.reading import Figure, find, ms, need

_COUNTS = re.compile(
    r"^requests: ([0-9]+) total, ([0-9]+) started, ([0-9]+) done, ([0-9]+) succeeded, ([0-9]+) failed"
)
_FINISHED = re.compile(r"^finished in ([0-9.]+(?:us|ms|s|m|h)), ([0-9.]+) req/s, ")
_STATUS = re.compile(r"^status codes: ([0-9]+) 2xx, ([0-9]+) 3xx, ([0-9]+) 4xx, ([0-9]+) 5xx")
_TRAFFIC = re.compile(r"^traffic: \S+ \(([0-9]+)\) total")
_TIMES = re.compile(r"^(?:time for )?request\s*:\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+[0-9.]+%")


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the output; figures whose line is missing are left out. Raises UnreadError if
    the line of counts or the last line is missing.
    """
    at, counts = need(lines, _COUNTS, "no line `requests: N total, ...` of h2load")
    end, finished = need(lines, _FINISHED, "no line `finished in TIME, RATE req/s` of h2load")
    done, seconds = int(counts[3]), ms(finished[1]) / 1e3
    figures = [Figure("requests", done, at, done), Figure("failed", int(counts[5]), at, int(counts[1]))]
    figures.append(Figure("rate", float(finished[2]), end, done))
    for line, found in find(lines, _STATUS):
        figures += [Figure(f"status_{i}xx", int(found[i - 1]), line, done) for i in (2, 3, 4, 5)]
    for line, found in find(lines, _TRAFFIC):
        figures.append(Figure("bytes", int(found[1]) / 1e6, line, done))
        if seconds > 0:
            figures.append(Figure("throughput", 8e-6 * int(found[1]) / seconds, line, done))
    for line, found in find(lines, _TIMES):
        for i, name in enumerate(("min", "max", "mean", "deviation"), 1):
            figures.append(Figure(f"latency_{name}", ms(found[i]), line, done))
    return figures
