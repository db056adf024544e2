"""Computes the throughput of a capture point's TCP connections by direction, and selects the busiest."""

from __future__ import annotations

import polars as pl

SECOND_NS = 1_000_000_000


def with_throughput(connections: pl.LazyFrame) -> pl.LazyFrame:
    """Adds lasted_ns, forward_bps and reverse_bps to rows of a connections table (docs/contracts/packets.md).

    The rates are payload bits a second from the connection's first packet to its last, retransmissions
    included; null if all its packets have one time.
    """
    lasted = pl.col("last_ns") - pl.col("first_ns")
    seconds = pl.when(lasted > 0).then(lasted / SECOND_NS)
    rates = {f"{way}_bps": 8 * pl.col(f"{way}_payload_bytes") / seconds for way in ("forward", "reverse")}
    return connections.with_columns(lasted_ns=lasted, **rates)


def busiest(connections: pl.LazyFrame, count: int) -> pl.DataFrame:
    """Returns the `count` connections with the most wire bytes in both directions, with their throughput."""
    both = pl.col("forward_wire_bytes") + pl.col("reverse_wire_bytes")
    order = connections.sort(both, pl.col("stream"), descending=[True, False])
    return with_throughput(order.head(count)).collect()
