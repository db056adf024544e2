"""Reads the summary of k6: JSON as `k6 run --summary-export /dev/stdout` writes it, or as `handleSummary`
prints its `data`.

Percentiles are those of the option `--summary-trend-stats`; k6 names them `p(99)`. A time without a unit is
in ms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reports.programs.document import document, line_of, section
from reports.programs.percentiles import printed
from reports.programs.reading import Figure, UnreadError, number

_SHARE = re.compile(r"p\(([0-9.]+)\)")
PLAIN = {"avg": "mean", "min": "min", "max": "max"}


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the summary; raises UnreadError if it has no HTTP requests."""
    found, first = document(lines, ("metrics",), "k6")
    metrics = section(found, "metrics", first)
    if "http_reqs" not in metrics:
        raise UnreadError(first, "the summary of k6 has no metric http_reqs")
    at = line_of(lines, first, "http_reqs")
    requests = _values(metrics, "http_reqs", at)
    n = int(number(requests.get("count"), at, "http_reqs.count"))
    figures = [Figure("requests", n, at, n)]
    if "rate" in requests:
        figures.append(Figure("rate", number(requests["rate"], at, "http_reqs.rate"), at, n))
    if "http_req_failed" in metrics:
        line = line_of(lines, first, "http_req_failed")
        failed = _values(metrics, "http_req_failed", line)
        share = number(failed.get("rate", failed.get("value")), line, "http_req_failed.rate")
        figures.append(Figure("failed", round(share * n), line, n))
    if "data_received" in metrics:
        line = line_of(lines, first, "data_received")
        received = number(_values(metrics, "data_received", line).get("count"), line, "data_received.count")
        figures.append(Figure("bytes", received / 1e6, line, n))
    return [*figures, *_latency(lines, metrics, first, n)]


def _values(metrics: Mapping[str, Any], name: str, line: int) -> Mapping[str, Any]:
    """Returns the values of a metric, which `handleSummary` has one level deeper."""
    one = section(metrics, name, line)
    return section(one, "values", line) or one


def _latency(lines: Sequence[str], metrics: Mapping[str, Any], first: int, n: int) -> list[Figure]:
    at = line_of(lines, first, "http_req_duration")
    values = _values(metrics, "http_req_duration", at)
    figures = [
        Figure(f"latency_{name}", number(values[key], at, key), at, n)
        for key, name in PLAIN.items()
        if key in values
    ]
    shares = {
        round(float(found[1]) / 100, 6): (number(value, at, key), at)
        for key, value in values.items()
        if (found := _SHARE.fullmatch(key)) is not None
    }
    if "med" in values:
        shares.setdefault(0.5, (number(values["med"], at, "med"), at))
    largest = next((one.value for one in figures if one.name == "latency_max"), None)
    return [*figures, *printed(shares, n, largest=largest)]
