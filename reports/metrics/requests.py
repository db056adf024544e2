"""Computes the figures of requests in captures, for the unencrypted protocols of `answers.py`, from any
program. A request's time is the time, at the capture point, between the packets in which the request and its
answer end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from contract.metrics import PERCENTILES
from reports.expect import bootstrap
from reports.metrics.answers import NUMBERS, PROTOCOLS, Numbered, Ordered, requests
from reports.metrics.metric import Metric, Of, count, metric
from reports.roles import SECOND, Span, phases
from reports.rundir import Run

WITH_STATUS = ("http", "http2")
STATUSES = ("2", "3", "4", "5")
METHOD = "request to answer at the capture point"


def request_metrics(run: Run) -> list[Metric]:
    """Returns number, rate, statuses and times of the requests of the hold, by capture point and protocol.
    Leaves out protocols without a request, and protocols in which the agent accounts for each message.
    """
    span = phases(run).get("hold")
    kinds = {software.kind for _, software, _ in run.plan.sessions()}
    protocols = [name for name, said in PROTOCOLS.items() if said.accounted_by not in kinds]
    return [
        one
        for point, path in run.captures.items()
        if (connections := run.connections.get(point)) is not None
        for protocol in protocols
        for one in _of_protocol(Of(capture=point, protocol=protocol), path, connections, span)
    ]


def _of_protocol(of: Of, path: Path, connections: pl.DataFrame, span: Span | None) -> list[Metric]:
    assert of.protocol is not None
    said = PROTOCOLS[of.protocol]
    needed = {"stream"} if isinstance(said, Ordered) else {"stream", NUMBERS}
    if not needed <= set(pl.read_parquet_schema(path)):  # another program or version wrote the table
        return []
    if of.protocol not in connections.get_column("app") and not _in_datagrams(path, of.protocol):
        return []
    found, left_out = requests(pl.scan_parquet(path), connections, of.protocol)
    if span is not None:
        found = found.filter(pl.col("asked_ns").is_between(span.start_ns, span.end_ns, closed="left"))
    n = found.height
    if not n and not left_out:
        return []
    answered = found.filter(pl.col("answered_ns").is_not_null())
    counts = {
        "requests": n,
        "unanswered": n - answered.height,
        **_statuses(of.protocol, said, answered),
        "unfollowed": left_out,
    }
    made = [
        count(f"app_{name}", of, value, "connections" if name == "unfollowed" else "requests", n, "count")
        for name, value in counts.items()
    ]
    if span is not None and n:
        seconds = (span.end_ns - span.start_ns) / SECOND
        made.append(count("app_rate", of, n / seconds, "requests/s", n, "requests over the hold"))
    return made + _latency(of, answered)


def _in_datagrams(path: Path, protocol: str) -> bool:
    """Returns whether packets of a protocol without connections passed the capture point."""
    said = PROTOCOLS[protocol]
    if isinstance(said, Ordered) or said.client is None:
        return False
    return not pl.scan_parquet(path).filter(pl.col("app") == protocol).head(1).collect().is_empty()


def _statuses(protocol: str, said: Ordered | Numbered, answered: pl.DataFrame) -> dict[str, int]:
    found = {}
    if protocol in WITH_STATUS:
        status = answered.get_column("status")
        found = {f"status_{digit}xx": int(status.str.starts_with(digit).sum()) for digit in STATUSES}
    return found | ({"errors": int(answered.get_column("error").sum())} if said.errors else {})


def _latency(of: Of, answered: pl.DataFrame) -> list[Metric]:
    """Returns mean, percentiles and largest of the times, in ms, with the intervals of a block bootstrap."""
    rows = answered.filter(pl.col("answered_ns") >= pl.col("asked_ns")).sort("asked_ns")
    if not rows.height:
        return []
    times = (rows.get_column("answered_ns") - rows.get_column("asked_ns")).to_numpy() / 1e6
    values = np.asarray(times, dtype=np.float64)
    made = [
        metric(f"app_latency_{name}", of, "ms", bootstrap.interval(values, share))
        for name, share in {"mean": None, **PERCENTILES}.items()
    ]
    return [*made, count("app_latency_max", of, float(values.max()), "ms", len(values), METHOD)]
