"""Compares the recorded datagrams of the agent's UDP roles with the counters of the nodes' stacks."""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.evidence import Evidence
from capture.conservation.messages import ENDING
from contract.plan import WAYS, Plan

DATAGRAMS_RECEIVED = Rule(
    "datagrams-received", "datagrams that UDP roles recorded as received",
    "those that the stacks of their nodes delivered to programs", WRONG, "at most",
)  # fmt: skip
DATAGRAMS_SENT = Rule(
    "datagrams-sent", "datagrams that UDP roles recorded as sent",
    "those that the stacks of their nodes sent", WRONG,
)  # fmt: skip
KIND = "udp"
IN, OUT = ("UdpInDatagrams", "Udp6InDatagrams"), ("UdpOutDatagrams", "Udp6OutDatagrams")
# The stack may refuse datagrams and count them here after a role has recorded them as sent.
REFUSED = ("UdpSndbufErrors", "Udp6SndbufErrors", "IpOutDiscards", "IpOutNoRoutes", "Ip6OutNoRoutes")


def arrivals_were_handed_over(e: Evidence) -> Found:
    """Checks that the stack of each light node delivered at least as many datagrams to programs as the
    agent's UDP roles of this node recorded arrivals and replies.
    """
    if why := _unknown(e):
        return Found(left_out=[why])
    assert e.messages is not None
    of = roles(e.plan)
    there = e.messages.select(endpoint="receiver", count="copies")
    back = e.messages.select(endpoint="sender", count="replies")
    recorded = _by_node(pl.concat([there, back]), of)
    stacks = e.counted(IN)
    compared = [
        Compared(node, count, stacks.get(node, 0), "datagrams") for node, count in sorted(recorded.items())
    ]
    return Found(compared)


def sends_left(e: Evidence) -> Found:
    """Compares, for each light node that runs only UDP roles of the agent, two sums: the attempts to send its
    messages plus its replies, and the datagrams that its stack sent.

    The tolerance is the number of datagrams that the stack refused. Leaves out nodes with a sender to several
    receivers.
    """
    if why := _unknown(e):
        return Found(left_out=[why])
    assert e.messages is not None
    of = roles(e.plan)
    alone = _only_roles(e.plan)
    several = {
        sender for sender, n in e.messages.group_by("sender", "flow", "seq").len()
        .group_by("sender").agg(pl.col("len").max()).iter_rows() if n > 1
    }  # fmt: skip
    first = e.messages.unique(["flow", "seq"]).select(endpoint="sender", count="attempts")
    replies = e.messages.filter(pl.col("pattern") == "request").select(endpoint="receiver", count="copies")
    recorded = _by_node(pl.concat([first, replies]), of)
    stacks, refused = e.counted(OUT), e.counted(REFUSED)
    compared, left_out = [], []
    for node, count in sorted(recorded.items()):
        if node not in alone:
            left_out.append("other programs of a node send, too")
        elif any(of.get(sender) == node for sender in several):
            left_out.append("messages go to several receivers")
        else:
            compared.append(Compared(node, count, stacks.get(node, 0), "datagrams", refused.get(node, 0)))
    return Found(compared, left_out)


def _unknown(e: Evidence) -> str:
    if e.unsuitable:
        return e.unsuitable
    if e.messages is None or e.stacks is None:
        return "no messages, or no counters of stacks"
    if any(event.action in ENDING for event in e.plan.events):
        return "the timeline ended programs, which lost their records"
    if any(li.way(way).impairment.corrupt for li in e.plan.links for way in WAYS):
        return "a link flips bits: frames come that are no message any more"
    return ""


def roles(plan: Plan) -> dict[str, str]:
    """Maps each endpoint of a UDP role of the agent to its light node."""
    return {
        session.endpoint: node.name
        for node, role, session in plan.sessions()
        if node.kind == "light" and role.kind == KIND and not role.process
    }


def _only_roles(plan: Plan) -> set[str]:
    return {
        node.name for node in plan.nodes
        if all(role.kind == KIND and not role.process for role in node.software)
    }  # fmt: skip


def _by_node(counts: pl.DataFrame, of: dict[str, str]) -> dict[str, int]:
    rows = counts.filter(pl.col("endpoint").is_in(list(of))).with_columns(
        node=pl.col("endpoint").replace_strict(of, default=None, return_dtype=pl.String)
    )
    return dict(rows.group_by("node").agg(pl.col("count").cast(pl.Int64).sum()).iter_rows())
