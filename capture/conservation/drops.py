"""Compares the frames that links to nodes dropped with lost messages and retransmissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.evidence import Evidence
from contract.plan import Plan

LINK_DROPS = Rule(
    "link-drops", "frames that a link to a node dropped",
    "datagrams that the node lacks, retransmitted segments, and answers to its own", WRONG, "at most",
)  # fmt: skip
KINDS = ("udp", "bulk", "mqtt", "mosquitto", "tcp")  # kinds of software of which all frames are counted
OTHER = 16  # number of frames that may be ARP, or segments that only open or close a connection
ONE_FRAME = 1400  # bytes of the longest message that fits into one frame
WAYS = {"forward": "b", "reverse": "a"}  # each direction of a link, and the end to which it leads
SEGMENTS, DATA = "TcpRetransSegs", "TcpExtTCPOrigDataSent"


def drops_are_missed(e: Evidence) -> Found:
    """Checks that each link to a node that does not forward dropped at most as many frames as these causes
    explain: lost attempts of messages to the node, TCP segments that any stack retransmitted, the node's own
    data segments (a link may drop their acknowledgements), and 16 others.

    Links whose counters restarted are left out.
    """
    if why := e.unsuitable or _unknown(e):
        return Found(left_out=[why])
    assert e.links is not None and e.stacks is not None
    stacks = {(node, counter): value for node, counter, value in
              e.stacks.select("node", "counter", "value").iter_rows()}  # fmt: skip
    again = sum(value for (_, counter), value in stacks.items() if counter == SEGMENTS)
    lost = _lost(e)
    compared = []
    for link, way, node in to_nodes(e.plan):
        rows = e.links.filter(link=link, direction=way).sort("t_ns")["dropped"]
        if rows.is_empty() or (rows.diff().drop_nulls() < 0).any():
            continue
        own = stacks.get((node, DATA), 0) + stacks.get((node, SEGMENTS), 0)
        known = lost.get(node, 0) + again + own
        compared.append(Compared(f"{link} {way}", int(rows[-1] - rows[0]), known, "frames", OTHER))
    return Found(compared, [] if compared else ["counters of links restarted"])


def _unknown(e: Evidence) -> str:
    if e.messages is None or e.links is None or e.stacks is None:
        return "no messages, or no counters of links and stacks"
    kinds = {role.kind for node in e.plan.nodes for role in node.software}
    if kinds - set(KINDS):
        return "programs send frames that are not counted"
    if any(w.get("protocol", "tcp") != "tcp" for w in _transfers(e.plan)):
        return "transfers over UDP count bytes, not datagrams"
    if (e.messages["bytes"].max() or 0) > ONE_FRAME:  # type: ignore[operator]
        return "messages of several frames"
    return ""


def _transfers(plan: Plan) -> Iterator[dict[str, Any]]:
    for node in plan.nodes:
        yield from (role.spec for role in node.software if role.kind == "bulk")


def to_nodes(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yields link, direction and node for each link direction that leads to a node which does not forward.
    Leaves out links between segments, media and half-duplex links.
    """
    ends = {node.name for node in plan.nodes if not node.forward}
    for link in plan.links:
        for way, end in WAYS.items():
            of_node = link.kind == "nodes" or (link.kind == "access" and end == "a")
            if of_node and getattr(link, end) in ends and not link.way(way).shared:
                yield link.name, way, getattr(link, end)


def _lost(e: Evidence) -> dict[str, int]:
    """Returns for each node an upper bound of the messages and replies that did not reach it. The bound
    counts each message to the node and each request from it: the number of attempts (at least one), less one
    if any copy arrived.
    """
    assert e.messages is not None
    homes = e.plan.homes()
    tried = pl.col("attempts").clip(1)
    there = e.messages.select(end="receiver", count=tried - pl.col("copies").cast(pl.Int64).clip(0, 1))
    back = e.messages.filter(pl.col("pattern") == "request").select(
        end="sender", count=tried - pl.col("replies").cast(pl.Int64).clip(0, 1)
    )
    rows = pl.concat([there, back.select("end", "count")], how="vertical_relaxed").drop_nulls()
    found: dict[str, int] = {}
    for end, count in rows.group_by("end").agg(pl.col("count").sum()).iter_rows():
        if end in homes:
            found[homes[end]] = found.get(homes[end], 0) + int(count)
    return found
