"""Reads the summary of hey: requests, statuses, errors, latency percentiles and rates.

Format: the template of requester/print.go. hey counts a request without an answer in `Error distribution`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.programs.percentiles import printed
from reports.programs.reading import Figure, find, need

_RATE = re.compile(r"^\s*Requests/sec:\s+([0-9.]+)")
_TIMES = {
    "min": re.compile(r"^\s*Fastest:\s+([0-9.]+) secs"),
    "mean": re.compile(r"^\s*Average:\s+([0-9.]+) secs"),
    "max": re.compile(r"^\s*Slowest:\s+([0-9.]+) secs"),
}
_TOTAL = re.compile(r"^\s*Total:\s+([0-9.]+) secs")
_BYTES = re.compile(r"^\s*Total data:\s+([0-9]+) bytes")
_SHARE = re.compile(r"^\s*([0-9.]+)%+ in ([0-9.]+) secs")
_STATUS = re.compile(r"^\s*\[([1-5])[0-9]{2}\]\s+([0-9]+) responses")
_ERRORS = re.compile(r"^\s*\[([0-9]+)\]\s+(?![0-9]+ responses)\S")


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the summary; raises UnreadError if it has no line of requests per second."""
    at, rate = need(lines, _RATE, "no line `Requests/sec: RATE` of hey")
    statuses = dict.fromkeys("2345", (0, at))
    for line, found in find(lines, _STATUS):
        statuses[found[1]] = (statuses.get(found[1], (0, at))[0] + int(found[2]), line)
    n = sum(count for count, _ in statuses.values())
    figures = [Figure("requests", n, at, n), Figure("rate", float(rate[1]), at, n)]
    figures += [Figure(f"status_{digit}xx", count, line, n) for digit, (count, line) in statuses.items()]
    failed = [(int(found[1]), line) for line, found in find(lines, _ERRORS)]
    lost = sum(count for count, _ in failed)
    figures.append(Figure("failed", lost, failed[0][1] if failed else at, n + lost))
    return [*figures, *_carried(lines, n), *_latency(lines, n)]


def _carried(lines: Sequence[str], n: int) -> list[Figure]:
    figures = []
    seconds = next((float(found[1]) for _, found in find(lines, _TOTAL)), 0.0)
    for line, found in find(lines, _BYTES):
        figures.append(Figure("bytes", int(found[1]) / 1e6, line, n))
        if seconds > 0:
            figures.append(Figure("throughput", 8e-6 * int(found[1]) / seconds, line, n))
    return figures


def _latency(lines: Sequence[str], n: int) -> list[Figure]:
    figures = [
        Figure(f"latency_{name}", 1e3 * float(found[1]), line, n)
        for name, pattern in _TIMES.items()
        for line, found in find(lines, pattern)
    ]
    largest = next((one.value for one in figures if one.name == "latency_max"), None)
    shares = {
        round(float(found[1]) / 100, 6): (1e3 * float(found[2]), line) for line, found in find(lines, _SHARE)
    }
    return [*figures, *printed(shares, n, largest=largest)]
