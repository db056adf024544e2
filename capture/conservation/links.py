"""Compares the frames that a link takes from a segment with those that enter the segment by its
other ports.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation import floods
from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.evidence import Evidence
from capture.conservation.segments import Port, Traffic, added
from contract.plan import Plan

TAKEN = "frames that directions of links sent, dropped or hold"
LINK_FRAMES = Rule("link-frames", TAKEN, "those that entered by the only other port of their segment", WRONG)
LINK_FRAMES_MOST = Rule(
    "link-most-frames", f"{TAKEN}, of segments with more ports", "those that entered by all other ports",
    WRONG,
    "at most",
)  # fmt: skip


def link_is_other_port(e: Evidence) -> Found:
    """Checks that in each segment of two ports a link takes exactly the frames that enter by the other port:
    it sends, drops or queues them.

    Leaves out segments with spanning tree, segments that are disturbed by links that go down, and links that
    duplicate frames. Nothing is compared if links were added during the run.
    """
    return _against_ports(e, two=True)


def link_has_from_ports(e: Evidence) -> Found:
    """Checks that in each segment of more than two ports a link takes (sends, drops or queues) at most the
    frames that enter by the other ports.

    Segments with spanning tree and links that duplicate frames are left out; nothing is compared if links
    were added during the run.
    """
    return _against_ports(e, two=False)


def _against_ports(e: Evidence, *, two: bool) -> Found:
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.events is not None and e.events.filter(pl.col("action") == "add").height:
        return Found(left_out=["links were added and proven, with frames that came by no port"])
    traffic, compared, left_out = Traffic(e), list[Compared](), list[str]()
    doubling, flooded = set(_doubling(e.plan)), floods.disturbed(e.plan)
    for segment in e.plan.segments:
        if segment.stp:
            left_out.append("spanning tree discards frames at ports that it blocks")
            continue
        if two and segment.name in flooded:
            left_out.append(floods.REASON)
            continue
        ports = traffic.ports(segment.name)
        if isinstance(ports, str):
            left_out.append(ports)
            continue
        for port in ports if (len(ports) == 2) == two else ():
            if port.way in doubling:
                left_out.append("a link duplicates frames")
            elif port.way is not None:
                compared += _of_direction(traffic, port.way, [p for p in ports if p is not port], e.virtual)
    return Found(compared, left_out)


def _of_direction(
    traffic: Traffic, way: tuple[str, str], others: list[Port], exact: bool
) -> Iterator[Compared]:
    """Yields one pair: the frames that a link direction took, and the frames that entered by the other ports.
    The pair covers the samples in which no counter restarted; without such samples nothing is yielded.

    In real time (`exact` is false) ports are read one after another, so the frames of the busiest sample are
    the tolerance.
    """
    put_in, took = added([port.into for port in others]), traffic.taken(*way)
    both = took.join(put_in, on="sample", suffix="_in").filter(pl.col("whole") & pl.col("whole_in"))
    if both.height:
        most = int(both.select(pl.max_horizontal("packets", "packets_in").max()).item())
        figure, count = int(both["packets"].sum()), int(both["packets_in"].sum())
        yield Compared(" ".join(way), figure, count, "frames", 0 if exact else most)


def _doubling(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields link and direction of each impairment, at the start or by an event, that duplicates frames."""
    return ((link, way) for link, way, one in plan.impairments() if one.duplicate)
