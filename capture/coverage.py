"""Which deliveries MQTT's guarantees cover when sessions break."""

from __future__ import annotations

import polars as pl

from capture.topics import Client

SECOND_NS = 1_000_000_000
# Keep-alive intervals without a sign of life after which a broker ends a connection (MQTT 5, 3.1.2.10).
PATIENCE = 1.5


def covered(rows: pl.DataFrame, clients: pl.DataFrame, by_name: dict[str, Client]) -> pl.Series:
    """For each row of `rows` (subscriber, sent_ns, acked_ns): not where a clean session broke on the way.

    A message that was sent longer before the session's end than the broker's patience had its chance.
    """
    at_ns = pl.max_horizontal("sent_ns", "acked_ns")
    over_ns = rows.select(at_ns.max()).item() or 0
    keyed = rows.with_row_index("row").select("row", "subscriber", at_ns=at_ns)
    joined = (
        keyed.drop_nulls()
        .sort("at_ns")
        .join_asof(
            _ends(clients, over_ns), left_on="at_ns", right_on="end_ns", by="subscriber", strategy="forward",
            check_sortedness=False,
        )
        .join(_patience(by_name), on="subscriber", how="left")
    )  # fmt: skip
    broke = joined.filter(pl.col("end_ns") - pl.col("at_ns") <= pl.col("patience_ns"))
    marked = broke.select("row", hit=True)
    return keyed.join(marked, on="row", how="left", maintain_order="left")["hit"].is_null()


def _ends(clients: pl.DataFrame, over_ns: int) -> pl.DataFrame:
    """Ends of sessions, but not a client's good-bye at `over_ns` or later, when nothing was sent any more."""
    last = pl.col("t_ns") == pl.col("t_ns").max().over("client")
    farewell = last & (pl.col("t_ns") >= over_ns) & (pl.col("what") == "disconnected")
    ends = clients.filter(pl.col("what").is_in(["disconnected", "failed"]) & ~farewell)
    return ends.select(pl.col("client").alias("subscriber"), end_ns="t_ns").sort("end_ns")


def _patience(by_name: dict[str, Client]) -> pl.DataFrame:
    """How long before a session's end a message may have been on its way; persistent sessions: never."""
    rows = [
        (name, int(PATIENCE * client.keepalive_s * SECOND_NS) if client.clean_session else -1)
        for name, client in by_name.items()
    ]
    return pl.DataFrame(rows, schema={"subscriber": pl.String, "patience_ns": pl.Int64}, orient="row")
