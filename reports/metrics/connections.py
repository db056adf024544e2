"""TCP connections at capture points: how many, how fast, their round trips, what was sent again."""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import percentile
from reports.roles import SECOND
from reports.rundir import Run

SHORTEST_NS = SECOND // 1000  # a rate over less says nothing


def connections(table: pl.DataFrame) -> pl.DataFrame:
    """Both directions of every connection added up, the one with most payload first.

    Rows stream, source, destination (address and port), seconds, mbps (payload of both directions over the
    connection's time), payload_bytes, packets, retransmissions, handshake_ms, rtt_ms, end.
    """
    span = pl.col("last_ns") - pl.col("first_ns")
    payload = pl.col("payload_forward") + pl.col("payload_reverse")
    return table.select(
        "stream",
        source=pl.concat_str("src", "src_port", separator=":"),
        destination=pl.concat_str("dst", "dst_port", separator=":"),
        seconds=span / SECOND,
        mbps=pl.when(span >= SHORTEST_NS).then(payload * 8e3 / span),
        payload_bytes=payload,
        packets=pl.col("packets_forward") + pl.col("packets_reverse"),
        retransmissions=pl.col("retransmissions_forward") + pl.col("retransmissions_reverse"),
        handshake_ms=pl.col("handshake_ns") / 1e6,
        rtt_ms=pl.col("rtt_ns") / 1e6,
        end="end",
    ).sort("payload_bytes", "stream", descending=[True, False])


def connection_metrics(run: Run) -> list[Metric]:
    """By capture point, of the whole capture: connections, round trips, rates, segments sent again."""
    found: list[Metric] = []
    for point, table in run.connections.items():
        of, n = Of(capture=point), table.height
        if not n:
            continue
        rows = connections(table)
        again, packets = (int(rows.get_column(name).sum()) for name in ("retransmissions", "packets"))
        found.append(count("connections", of, n, "connections", n, "count"))
        found.append(count("connection_retransmissions", of, again, "segments", packets, "count"))
        for column, name, unit in (
            ("handshake_ms", "handshake", "ms"),
            ("rtt_ms", "smoothed_rtt", "ms"),
            ("mbps", "connection_rate", "Mbit/s"),
            ("seconds", "connection_seconds", "s"),
        ):
            values = np.sort(rows.get_column(column).drop_nulls().to_numpy().astype(np.float64))
            if len(values):
                for label, q in (("p50", 0.5), ("p99", 0.99)):
                    found.append(metric(f"{name}_{label}", of, unit, percentile(values, q)))
    return found
