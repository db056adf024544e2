"""Computes the figures of TCP connections at capture points: number, goodput, round trips,
retransmissions.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import percentile
from reports.roles import SECOND
from reports.rundir import Run

SHORTEST_NS = SECOND // 1000  # ns; a rate over a shorter time is not meaningful


def connections(table: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each connection, both directions together, the largest payload first.

    Columns: stream, source, destination (address and port), app, seconds, mbps (payload of both directions
    over the connection's time; null below 1 ms), payload_bytes, packets, retransmissions, end. handshake_ms:
    from SYN to the ACK that completes the handshake. rtt_ms: the sum of the smoothed round trips from the
    capture to both ends; this is the whole path only if both ends send data (else one part is the
    handshake's). Null if one end acknowledged nothing.
    """
    span = pl.col("last_ns") - pl.col("first_ns")
    ways = ("forward", "reverse")

    def both(what: str) -> pl.Expr:
        return pl.sum_horizontal(f"{way}_{what}" for way in ways)

    samples = [pl.col(f"{way}_srtt_ns") for way in ways]
    return table.select(
        "stream",
        source=pl.concat_str("src", "src_port", separator=":"),
        destination=pl.concat_str("dst", "dst_port", separator=":"),
        app="app",
        seconds=span / SECOND,
        mbps=pl.when(span >= SHORTEST_NS).then(both("payload_bytes") * 8e3 / span),
        payload_bytes=both("payload_bytes"),
        packets=both("packets"),
        retransmissions=both("retransmissions"),
        handshake_ms=(pl.col("syn_synack_ns") + pl.col("synack_ack_ns")) / 1e6,
        rtt_ms=pl.sum_horizontal(samples, ignore_nulls=False) / 1e6,
        end="end",
    ).sort("payload_bytes", "stream", descending=[True, False])


def connection_metrics(run: Run) -> list[Metric]:
    """Returns number, retransmissions, duration, handshake and round-trip times, and goodput of the
    connections of each capture; captures without connections are left out.

    Goodput quantiles are weighted by payload: half of all payload travelled in connections that are at most
    as fast as p50. Control connections therefore hardly count.
    """
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
            ("seconds", "connection_seconds", "s"),
        ):
            values = np.sort(rows.get_column(column).drop_nulls().to_numpy().astype(np.float64))
            if len(values):
                for label, q in (("p50", 0.5), ("p99", 0.99)):
                    found.append(metric(f"{name}_{label}", of, unit, percentile(values, q)))
        found += _rates(of, rows.select("mbps", "payload_bytes").drop_nulls())
    return found


def _rates(of: Of, rows: pl.DataFrame) -> list[Metric]:
    carried = rows.filter(pl.col("payload_bytes") > 0).sort("mbps")
    sums, found = carried.get_column("payload_bytes").cum_sum(), []
    for label, q in (("p50", 0.5), ("p99", 0.99)) if carried.height else ():
        place = int((sums < q * sums[-1]).sum())
        value = float(carried.get_column("mbps")[place])
        method = "connections sorted by goodput, at this share of all payload"
        found.append(count(f"connection_rate_{label}", of, value, "Mbit/s", carried.height, method))
    return found
