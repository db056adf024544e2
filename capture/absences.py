"""Removes expected receivers of messages that were sent while the receiver had unsubscribed."""

from __future__ import annotations

import polars as pl

MESSAGE = ("flow", "seq")
NEVER = 2**63 - 1
# A broker need not deliver messages that it still held when the request to unsubscribe came, but it had time
# to begin with older ones.
WAITED_NS = 5 * 10**9


def spans(said: pl.DataFrame) -> pl.DataFrame:
    """Returns the times in which a receiver had no subscription: receiver, begin_ns (the request to
    unsubscribe) and end_ns (the next `subscribed`, or NEVER if none follows). `said` has the records of
    sessions (endpoint, what, t_ns).
    """
    left = said.filter(pl.col("what") == "unsubscribing").select("endpoint", begin_ns="t_ns").sort("begin_ns")
    back = said.filter(pl.col("what") == "subscribed").select("endpoint", end_ns="t_ns").sort("end_ns")
    found = left.join_asof(
        back, left_on="begin_ns", right_on="end_ns", by="endpoint", strategy="forward", check_sortedness=False
    )
    return found.select(receiver="endpoint", begin_ns="begin_ns", end_ns=pl.col("end_ns").fill_null(NEVER))


def expected_only(rows: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Removes the rows of receivers that had unsubscribed when the message was sent, or within WAITED_NS
    after it, unless it arrived. A message that loses all its rows keeps one, with receiver null.
    """
    absent = spans(said)
    if absent.is_empty():
        return rows
    sent = pl.coalesce("sent_ns", "scheduled_ns")
    keyed = rows.with_row_index("row").filter(
        pl.col("received_ns").is_null() & pl.col("replied_ns").is_null()
    )
    missed = (
        keyed.select("row", "receiver", sent_ns=sent)
        .join(absent, on="receiver")
        .filter(pl.col("sent_ns").is_between(pl.col("begin_ns") - WAITED_NS, "end_ns", closed="left"))
        .select("row")
        .unique()
    )
    numbered = rows.with_row_index("row")
    kept, gone = numbered.join(missed, on="row", how="anti"), numbered.join(missed, on="row", how="semi")
    alone = gone.join(kept, on=MESSAGE, how="anti").unique(MESSAGE, keep="first", maintain_order=True)
    alone = alone.with_columns(receiver=pl.lit(None, pl.String))
    return pl.concat([kept, alone]).drop("row")
