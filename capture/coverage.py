"""Finds the deliveries that are covered by a guarantee that holds only while a session lasts."""

from __future__ import annotations

import polars as pl

FOR_EVER = 2**62  # a time in ns that stands for ever


def covered(rows: pl.DataFrame, said: pl.DataFrame, sessions: pl.DataFrame) -> pl.Series:
    """Returns for each row of `rows` (pattern, sender, receiver, sent_ns, settled_ns, outcome) True if the
    guarantee covers it: no session that it depends on ended within the session's patience after the message
    was sent or settled.

    A row depends on the receiver's session. Unless the message was published, it also depends on the sender's
    session and on the connection between them. A message that was published and never settled depends on its
    sender's session as well, whenever that ends. `said` has the records of sessions (endpoint, what, t_ns,
    peer: the other end of one connection, or "" for all). `sessions` are those of the plan (endpoint,
    patience_ns; null: it outlives connections).
    """
    at_ns = pl.max_horizontal("sent_ns", "settled_ns")
    over_ns = rows.select(at_ns.max()).item() or 0
    keyed = rows.with_row_index("row").select("row", "pattern", "sender", "receiver", "outcome", at_ns=at_ns)
    reached = keyed.drop_nulls().sort("at_ns")
    owed = reached.filter((pl.col("pattern") == "publish") & (pl.col("outcome") == "unsettled"))
    direct = reached.filter(pl.col("pattern") != "publish")
    patience, ends = sessions.drop_nulls("patience_ns"), _ends(said, over_ns)
    broke = [
        _broke(reached, "receiver", patience, "receiver", ends),
        *(_broke(direct, "sender", patience, end, ends) for end in ("receiver", "sender")),
        _broke(owed, "sender", patience.with_columns(patience_ns=pl.lit(FOR_EVER)), "sender", ends),
    ]
    marked = pl.concat(broke).unique().with_columns(hit=True)
    return keyed.join(marked, on="row", how="left", maintain_order="left")["hit"].is_null()


def _broke(
    rows: pl.DataFrame, holder: str, patience: pl.DataFrame, end: str, ends: pl.DataFrame
) -> pl.DataFrame:
    """Returns the numbers (`row`) of the messages after which the endpoint in column `end` disconnected
    within the patience of the session in column `holder`; it disconnected from all peers or from the
    message's other end.
    """
    known = patience.select(pl.col("endpoint").alias(holder), "patience_ns")
    rows = rows.join(known, on=holder, maintain_order="left")
    other = "sender" if end == "receiver" else "receiver"
    of_all, of_one = ends.filter(peer="").drop("peer"), ends.filter(pl.col("peer") != "")
    next_ends = ((of_all, [end]), (of_one.rename({"peer": other}), [end, other]))
    joined = [
        rows.join_asof(
            some.rename({"endpoint": end}), left_on="at_ns", right_on="end_ns", by=by, strategy="forward",
            check_sortedness=False,
        )
        for some, by in next_ends
    ]  # fmt: skip
    within = pl.col("end_ns") - pl.col("at_ns") <= pl.col("patience_ns")
    return pl.concat([found.filter(within).select("row") for found in joined])


def _ends(said: pl.DataFrame, over_ns: int) -> pl.DataFrame:
    """Returns the disconnects and failures of sessions (endpoint, peer, end_ns), except an endpoint's last
    record if that is a disconnect at or after `over_ns`, from when on nothing was sent.
    """
    last = pl.col("t_ns") == pl.col("t_ns").max().over("endpoint")
    farewell = last & (pl.col("t_ns") >= over_ns) & (pl.col("what") == "disconnected")
    ends = said.filter(pl.col("what").is_in(["disconnected", "failed"]) & ~farewell)
    return ends.select("endpoint", "peer", end_ns="t_ns").sort("end_ns")
