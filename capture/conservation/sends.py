"""Compares the frames that links take from nodes with two counts: the datagrams that programs sent, and the
packets that the stacks forwarded.
"""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import link_steps
from capture.conservation.evidence import Evidence
from capture.conservation.messages import disrupted, of_datagrams
from capture.conservation.ports import Ports, ports

TAKEN = "frames that the links of a node sent, dropped or hold"
LINK_MESSAGES = Rule("link-messages", TAKEN, "the datagrams that its programs sent", WRONG, "at least")
LINK_FORWARDED = Rule(
    "link-forwarded", f"{TAKEN} since they were made", "the packets that its stack forwarded", WRONG,
    "at least",
)  # fmt: skip
FORWARDED = ("IpForwDatagrams", "Ip6OutForwDatagrams")


def links_take_messages(e: Evidence) -> Found:
    """Checks that the links out of each light node took (sent, dropped or queued) at least one frame for each
    datagram that its programs sent to other nodes.

    Nodes with an interface without a counted link, or whose link counters restarted, are left out. Nothing is
    compared if messages may be lost without a counted drop.
    """
    if why := e.unsuitable or disrupted(e):
        return Found(left_out=[why])
    steps = link_steps(e)
    if steps is None or e.messages is None:
        return Found(left_out=["no messages, or no counters of links"])
    known, homes = ports(e.plan), e.plan.homes()
    first_ns, last_ns = int(steps["begin_ns"].min()), int(steps["t_ns"].max())  # type: ignore[arg-type]
    rows = of_datagrams(e).filter(pl.col("sent_ns").is_between(first_ns, last_ns, closed="right"))
    place = {end: pl.col(end).replace_strict(homes, default=None, return_dtype=pl.String) for end in ENDS}
    left = rows.with_columns(node=place["sender"]).filter(pl.col("node") != place["receiver"])
    counts = left.unique(["flow", "seq"]).group_by("node").len().drop_nulls("node")
    compared, left_out = list[Compared](), list[str]()
    for node, count in counts.sort("node").iter_rows():
        taken = _taken(steps, known, node)
        if isinstance(taken, str):
            left_out.append(taken)
        else:
            compared.append(Compared(node, taken[0], count, "frames", 0 if e.virtual else taken[1]))
    return Found(compared, left_out)


def links_take_forwarded(e: Evidence) -> Found:
    """Checks that the links out of each light node took (sent, dropped or queued) at least one frame for each
    packet that the node's stack forwarded.

    The links count from before the scenario, so their counts include the frames of the link proof. The
    stack counts only the scenario, up to its end. That may be one sample later than the links' last
    sample, so the tolerance is the busiest sample.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    steps = link_steps(e)
    if steps is None or e.links is None or e.stacks is None:
        return Found(left_out=["no counters of links, or none of stacks"])
    known = ports(e.plan)
    counts = e.stacks.filter(pl.col("counter").is_in(FORWARDED)).group_by("node").agg(pl.col("value").sum())
    compared, left_out = list[Compared](), list[str]()
    for node, count in counts.filter(pl.col("node").is_in(list(known.devices))).sort("node").iter_rows():
        taken = _taken(steps, known, node)
        if isinstance(taken, str):
            left_out.append(taken)
        else:
            total = _ways(e.links, known, node).sort("t_ns").group_by("link", "direction").last()
            frames = int(total.select(pl.sum_horizontal(*TOTALS).sum()).item())
            compared.append(Compared(node, frames, count, "frames", taken[1]))
    return Found(compared, left_out)


ENDS = ("sender", "receiver")
TOTALS = ("packets", "dropped", "backlog_packets")


def _taken(steps: pl.DataFrame, known: Ports, node: str) -> tuple[int, int] | str:
    """Returns the frames that the links out of the node sent, dropped or queued, in total and in the busiest
    sample; or the reason why not all are counted.
    """
    if not set(known.devices.get(node, ())) <= known.covered(node) or node not in known.devices:
        return "a node has interfaces without a link"
    rows = _ways(steps, known, node)
    if rows.is_empty() or not rows["whole"].all():
        return "counters of a node's links restarted"
    frames = pl.sum_horizontal("packets", "dropped", "queued").sum()
    by_sample = rows.group_by("sample").agg(frames=frames)["frames"]
    return int(by_sample.sum()), int(by_sample.max())  # type: ignore[arg-type]


def _ways(rows: pl.DataFrame, known: Ports, node: str) -> pl.DataFrame:
    """Returns the rows of the link directions that lead out of the node."""
    out = known.rows.filter(node=node, way="tx").select("link", "direction").unique()
    return rows.join(out, on=["link", "direction"], how="semi")
