"""Which deliveries a promise covers that holds only while the receiver's session lasts."""

from __future__ import annotations

import polars as pl


def covered(rows: pl.DataFrame, said: pl.DataFrame, sessions: pl.DataFrame) -> pl.Series:
    """For each row of `rows` (receiver, sent_ns, settled_ns): its session did not break on the way.

    said: what became of sessions (endpoint, what, t_ns). sessions: the plan's (endpoint, patience_ns); a
    message that was sent longer than the patience before the session's end had its chance.
    """
    at_ns = pl.max_horizontal("sent_ns", "settled_ns")
    over_ns = rows.select(at_ns.max()).item() or 0
    keyed = rows.with_row_index("row").select("row", "receiver", at_ns=at_ns)
    patience = sessions.drop_nulls("patience_ns").select(receiver="endpoint", patience_ns="patience_ns")
    joined = (
        keyed.drop_nulls()
        .join(patience, on="receiver")
        .sort("at_ns")
        .join_asof(
            _ends(said, over_ns), left_on="at_ns", right_on="end_ns", by="receiver", strategy="forward",
            check_sortedness=False,
        )
    )  # fmt: skip
    broke = joined.filter(pl.col("end_ns") - pl.col("at_ns") <= pl.col("patience_ns"))
    marked = broke.select("row", hit=True)
    return keyed.join(marked, on="row", how="left", maintain_order="left")["hit"].is_null()


def _ends(said: pl.DataFrame, over_ns: int) -> pl.DataFrame:
    """Ends of sessions, but not a good-bye at `over_ns` or later, when nothing was sent any more."""
    last = pl.col("t_ns") == pl.col("t_ns").max().over("endpoint")
    farewell = last & (pl.col("t_ns") >= over_ns) & (pl.col("what") == "disconnected")
    ends = said.filter(pl.col("what").is_in(["disconnected", "failed"]) & ~farewell)
    return ends.select(receiver="endpoint", end_ns="t_ns").sort("end_ns")
