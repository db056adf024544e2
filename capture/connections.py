"""TCP connections of a capture point: throughput by direction, and the busiest of them."""

from __future__ import annotations

import polars as pl

SECOND_NS = 1_000_000_000


def with_throughput(connections: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of a connections table (docs/contracts/packets.md) with lasted_ns, forward_bps and reverse_bps.

    Bits of payload a second from the connection's first packet to its last, what was sent again included;
    null where all its packets stand at one time.
    """
    lasted = pl.col("last_ns") - pl.col("first_ns")
    seconds = pl.when(lasted > 0).then(lasted / SECOND_NS)
    rates = {f"{way}_bps": 8 * pl.col(f"{way}_payload_bytes") / seconds for way in ("forward", "reverse")}
    return connections.with_columns(lasted_ns=lasted, **rates)


def busiest(connections: pl.LazyFrame, count: int) -> pl.DataFrame:
    """The connections with the most bytes on the wire in both directions, with their throughput."""
    both = pl.col("forward_wire_bytes") + pl.col("reverse_wire_bytes")
    order = connections.sort(both, pl.col("stream"), descending=[True, False])
    return with_throughput(order.head(count)).collect()
