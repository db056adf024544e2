"""Compares the payload that nodes sent and received with the bytes that their interfaces counted."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import node_steps
from capture.conservation.evidence import Evidence
from contract.plan import Plan

NODE_PAYLOAD = Rule(
    "node-payload", "bytes of nodes' interfaces", "the payload that nodes exchanged", WRONG, "at least"
)
GO_BETWEENS = ("broker", "server")  # roles whose node may pass messages on to itself, without an interface


def node_carries_messages(e: Evidence) -> Found:
    """Checks that the interfaces of each light node sent and received at least the payload of its messages
    with other nodes, and received the payload of bulk transfers. Nodes whose counters restarted are left out.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    steps = node_steps(e)
    if steps is None or steps.is_empty():
        return Found(left_out=["no counters of nodes"])
    compared, left_out = [], []
    last_ns = int(steps["t_ns"].max())  # type: ignore[arg-type]
    for way, word, payload in (
        ("rx", "received", _taken(e, last_ns)), ("tx", "sent", _given(e, last_ns)),
    ):  # fmt: skip
        grown = steps.group_by("node").agg(pl.col(f"{way}_bytes").sum(), pl.col("whole").all())
        for node, carried, whole, needed in grown.join(payload, on="node").sort("node").iter_rows():
            if whole:
                compared.append(Compared(f"{node} {word}", carried, needed, "bytes"))
            else:
                left_out.append("a node's counters restarted")
    return Found(compared, left_out if compared or left_out else [_why_none(e)])


def _why_none(e: Evidence) -> str:
    rows = _between(e)
    replied = 0 if rows is None else rows["replied_ns"].count()
    if replied:
        return f"{replied} replies came to other nodes, and no arrival of their requests was recorded"
    return "no message arrived at another node"


def _taken(e: Evidence, last_ns: int) -> pl.DataFrame:
    """Returns the payload bytes that each node received from other nodes until the last sample, by messages
    (first arrivals) and bulk transfers.
    """
    rows = _between(e)
    parts = [] if rows is None else [
        rows.filter(pl.col("received_ns") <= last_ns).select(node="to", payload="bytes")
    ]  # fmt: skip
    parts += _transferred(e, 1, last_ns)
    return _summed(parts)


def _given(e: Evidence, last_ns: int) -> pl.DataFrame:
    """Returns the payload bytes of the messages that each node sent to other nodes and that arrived until the
    last sample. A message to several receivers counts once.
    """
    rows = _between(e)
    parts = []
    if rows is not None:
        there = rows.filter(pl.col("received_ns") <= last_ns).unique(["flow", "seq"])
        parts = [there.select(node="from", payload="bytes")]
    return _summed(parts)


def _between(e: Evidence) -> pl.DataFrame | None:
    """Returns the messages between different light nodes, with their names in columns `from` and `to`; None
    without messages.

    Leaves out published messages if the sender's or the receiver's node also runs a broker or server.
    """
    if e.messages is None:
        return None
    known = homes(e.plan)
    placed = e.messages.with_columns(
        pl.col(end).replace_strict(known, default=None, return_dtype=pl.String).alias(name)
        for end, name in (("sender", "from"), ("receiver", "to"))
    )
    between = go_betweens(e.plan)
    apart = (pl.col("from") != pl.col("to")) & ~(
        (pl.col("pattern") == "publish") & (pl.col("from").is_in(between) | pl.col("to").is_in(between))
    )
    return placed.filter(apart)


def _transferred(e: Evidence, leg: int, last_ns: int) -> Iterator[pl.DataFrame]:
    if e.transfers is None:
        return
    known = homes(e.plan)
    home = {
        end: pl.col(end).replace_strict(known, default=None, return_dtype=pl.String)
        for end in ("sender", "endpoint")
    }
    rows = e.transfers.filter(
        (pl.col("leg") == leg) & (pl.col("t_ns") <= last_ns) & (home["sender"] != home["endpoint"])
    )
    yield (
        rows.group_by("flow", "endpoint")
        .agg(pl.col("bytes").max())
        .select(node=home["endpoint"], payload="bytes")
    )


def _summed(parts: list[pl.DataFrame]) -> pl.DataFrame:
    empty = pl.DataFrame(schema={"node": pl.String, "payload": pl.Int64})
    return pl.concat([empty, *parts]).drop_nulls().group_by("node").agg(pl.col("payload").sum())


def homes(plan: Plan) -> dict[str, str]:
    """Maps each endpoint on a light node to the name of this node."""
    return {s.endpoint: node.name for node, _, s in plan.sessions() if node.kind == "light"}


def go_betweens(plan: Plan) -> list[str]:
    return [
        node.name for node in plan.nodes
        if any(software.role in GO_BETWEENS for software in node.software)
    ]  # fmt: skip
