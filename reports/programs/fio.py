"""Reads the JSON output of fio (`fio --output-format=json`): operations, rates, throughput and completion
latency of reads, writes and trims, each over all jobs of a group report.

Format: fio's stat.c (add_ddir_status_json). Latencies are `clat_ns`, in ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contract.figures import FORMATS
from reports.programs.document import document, line_of, section
from reports.programs.percentiles import printed
from reports.programs.reading import Figure, UnreadError, number

PLAIN = {"mean": "mean", "stddev": "deviation", "min": "min", "max": "max"}


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the document; raises UnreadError unless it has one job, because percentiles of
    several jobs cannot be joined (`--group_reporting` makes them one).
    """
    found, first = document(lines, ("fio version", "jobs"), "fio --output-format=json")
    jobs, at = found["jobs"], line_of(lines, first, "jobs")
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
        raise UnreadError(at, "fio reports more jobs than one, or none; add --group_reporting")
    figures = []
    for part in FORMATS["fio"]:
        line = line_of(lines, at, part)
        figures += _part(lines, section(jobs[0], part, line), part, line)
    return figures


def _part(lines: Sequence[str], values: Mapping[str, Any], part: str, at: int) -> list[Figure]:
    """Returns the figures of reads, writes or trims; none if the job did not do any."""
    n = int(number(values.get("total_ios", 0), at, "total_ios"))
    if not n:
        return []
    figures = [
        Figure("requests", n, line_of(lines, at, "total_ios"), n, part=part),
        Figure("rate", number(values.get("iops"), at, "iops"), line_of(lines, at, "iops"), n, part=part),
    ]
    for name, key, factor in (("throughput", "bw_bytes", 8e-6), ("bytes", "io_bytes", 1e-6)):
        value = factor * number(values.get(key), at, key)
        figures.append(Figure(name, value, line_of(lines, at, key), n, part=part))
    return [*figures, *_latency(lines, values, part, n, at)]


def _latency(lines: Sequence[str], values: Mapping[str, Any], part: str, n: int, at: int) -> list[Figure]:
    line = line_of(lines, at, "clat_ns")
    took = section(values, "clat_ns", line)
    figures = [
        Figure(f"latency_{name}", 1e-6 * number(took[key], line, key), line, n, part=part)
        for key, name in PLAIN.items()
        if key in took
    ]
    shares = {
        round(float(key) / 100, 6): (1e-6 * number(value, line, key), line_of(lines, line, key))
        for key, value in section(took, "percentile", line).items()
    }
    largest = next((one.value for one in figures if one.name == "latency_max"), None)
    return [*figures, *printed(shares, n, part, largest)]
