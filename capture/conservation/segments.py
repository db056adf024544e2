"""Counts the frames at the ports of segments, and checks that at least as many leave a segment, are dropped
or queued as enter it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from capture.conservation import floods
from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import link_steps, node_steps
from capture.conservation.evidence import Evidence
from capture.conservation.ports import Ports, ports
from contract.plan import WAYS, Link, Plan

SEGMENT_FRAMES = Rule(
    "segment-frames",
    "frames that left a segment, were dropped or waited",
    "those that entered it",
    WRONG,
    "at least",
)
NONE = pl.DataFrame(schema={"sample": pl.Int64, "packets": pl.Int64, "bytes": pl.Int64, "whole": pl.Boolean})


@dataclass(frozen=True)
class Flow:
    """Frames and bytes into and out of one segment, by sample. `out` includes frames that links dropped or
    queued.
    """

    into: pl.DataFrame
    out: pl.DataFrame


@dataclass(frozen=True)
class Port:
    """Frames and bytes into the segment and out of it through one port, by sample. `out` includes frames that
    the port's link dropped or queued.

    way: the link and direction by which frames leave the segment; None if the port has no counted link.
    """

    into: pl.DataFrame
    out: pl.DataFrame
    way: tuple[str, str] | None = None


def segments_pass_on(e: Evidence) -> Found:
    """Checks that at least as many frames leave each segment, are dropped or are queued as enter it;
    broadcast frames leave by several ports. In real time the tolerance is the frames of the busiest sample.

    Leaves out segments with spanning tree, segments at a link that flips bits, segments that are disturbed by
    links that go down, and segments with frames that are not counted.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    traffic, damaged, flooded = Traffic(e), _damaged(e.plan), floods.disturbed(e.plan)
    compared, left_out = [], []
    for segment in e.plan.segments:
        if segment.stp:
            left_out.append("spanning tree discards frames at ports that it blocks")
            continue
        if segment.name in damaged:
            left_out.append("a bridge discards frames whose addresses a link has damaged")
            continue
        if segment.name in flooded:
            left_out.append(floods.REASON)
            continue
        flow = traffic.of(segment.name)
        if isinstance(flow, str):
            left_out.append(flow)
            continue
        both = flow.into.join(flow.out, on="sample", suffix="_out").filter(
            pl.col("whole") & pl.col("whole_out")
        )
        if both.height:
            into, out = int(both["packets"].sum()), int(both["packets_out"].sum())
            most = int(both["packets"].max())  # type: ignore[arg-type]
            compared.append(Compared(segment.name, out, into, "frames", 0 if e.virtual else most))
    return Found(compared, left_out)


class Traffic:
    """Counts the traffic across the ports of segments, from the samples of nodes and links."""

    def __init__(self, e: Evidence) -> None:
        self._plan = e.plan
        self._nodes = node_steps(e)
        self._links = link_steps(e)
        self._ports = ports(e.plan)

    def of(self, segment: str) -> Flow | str:
        """Returns the frames into and out of a segment, or the reason why they are unknown."""
        found = self.ports(segment)
        if isinstance(found, str):
            return found
        return Flow(added([port.into for port in found]), added([port.out for port in found]))

    def ports(self, segment: str) -> list[Port] | str:
        """Returns the segment's ports to light nodes and to links between segments, or the reason why their
        frames are unknown.
        """
        if self._nodes is None or self._links is None:
            return "no counters of nodes and links"
        if any(_shared(li) and segment in (li.a, li.b, li.name) for li in self._plan.links):
            return "a segment's frames share a medium"
        if any(li.trunk and any(segment in pair for pair in li.joins) for li in self._plan.links):
            return "a segment's frames share a trunk with others"
        here = {name for name, devices in self._ports.devices.items() if segment in devices.values()}
        if why := _unknown(self._plan, self._ports, segment, here):
            return why
        found = []
        for node in sorted(here):
            into = self._at(node, segment, "tx", waiting=False)
            out = self._at(node, segment, "rx", waiting=True)
            found.append(Port(into, out, self._ports.way_into(node, segment)))
        for link in self._plan.links:
            if link.kind == "segments" and segment in (link.a, link.b):
                leaving = "forward" if link.a == segment else "reverse"
                entering = "reverse" if leaving == "forward" else "forward"
                into = self._of_link(link.name, entering, waiting=False)
                out = self._of_link(link.name, leaving, waiting=True)
                found.append(Port(into, out, (link.name, leaving)))
        return found

    @property
    def times(self) -> pl.DataFrame:
        """The begin and end of each sample interval of the nodes: sample, begin_ns, t_ns."""
        columns = pl.col("begin_ns", "t_ns").first()
        empty = pl.DataFrame(schema={"sample": pl.Int64, "begin_ns": pl.Int64, "t_ns": pl.Int64})
        return empty if self._nodes is None else self._nodes.group_by("sample").agg(columns).sort("sample")

    def at_port(self, node: str, segment: str) -> pl.DataFrame | str:
        """Returns the frames and bytes of both directions at the node's interface in the segment, by sample,
        or the reason why they are unknown.
        """
        if self._nodes is None or self._links is None:
            return "no counters of nodes and links"
        if why := _unknown(self._plan, self._ports, segment, {node}):
            return why
        return added([self._at(node, segment, way, waiting=False) for way in ("tx", "rx")])

    def taken(self, link: str, direction: str) -> pl.DataFrame:
        """Returns by sample two sums for one direction of a link: its sent frames, dropped frames and the
        growth of its queue; and its sent bytes.
        """
        return self._of_link(link, direction, waiting=True)

    def both_ways(self, link: str) -> pl.DataFrame | str:
        """Returns by sample the frames and bytes that both directions of a link sent together, or the reason
        why they are unknown.
        """
        if self._links is None:
            return "no counters of links"
        found = next((li for li in self._plan.links if li.name == link), None)
        if found is None or _shared(found):
            return "the ends of a captured link share one transmitter"
        return added([self._of_link(link, way, waiting=False) for way in WAYS])

    def _at(self, node: str, segment: str, way: str, *, waiting: bool) -> pl.DataFrame:
        """Counts frames and bytes of the node's interface in this segment: the node's total less those of its
        links in other segments. `way` is "tx" (sent) or "rx" (received).

        waiting: the count includes frames that the node's link in this segment dropped or queued.
        """
        assert self._nodes is not None
        own = self._nodes.filter(node=node).select(
            "sample", packets=pl.col(f"{way}_packets"), bytes=pl.col(f"{way}_bytes"), whole="whole"
        )
        parts = [own]
        for device, link, direction in (
            self._ports.rows.filter(node=node, way=way).select("device", "link", "direction").iter_rows()
        ):
            if self._ports.devices[node][device] != segment:
                parts.append(_negative(self._of_link(link, direction, waiting=False)))
            elif waiting:
                plain = self._of_link(link, direction, waiting=False)
                parts += [self._of_link(link, direction, waiting=True), _negative(plain)]
        return added(parts)

    def _of_link(self, link: str, direction: str, *, waiting: bool) -> pl.DataFrame:
        assert self._links is not None
        packets = pl.col("packets")
        if waiting:
            packets = packets + pl.col("dropped") + pl.col("queued")
        rows = self._links.filter(link=link, direction=direction)
        return rows.select("sample", packets=packets, bytes=pl.col("bytes"), whole="whole")


def _shared(link: Link) -> bool:
    """Returns True if both ends of a link share one transmitter (a half-duplex link or a medium)."""
    return bool(link.forward.shared) or link.kind == "medium"


def _damaged(plan: Plan) -> set[str]:
    """Returns the segments at the ends of links that flip bits, at the start or by an event."""
    flips = {link for link, _, one in plan.impairments() if one.corrupt}
    return {name for link in plan.links if link.name in flips for name in (link.a, link.b, link.name)}


def _unknown(plan: Plan, known: Ports, segment: str, here: set[str]) -> str:
    """Returns the reason why the frames at the ports of the nodes `here` in the segment cannot be separated
    from other frames; "" if they can.
    """
    others = [n for n in plan.nodes if n.name not in known.devices]
    if any(i.segment == segment for n in others for i in n.interfaces):
        return "a virtual machine's ports are counted at other times"
    inside = [i for n in plan.nodes for i in n.interfaces if i.segment == segment]
    if any(i.nic for i in inside):
        return "a NIC of the machine is in the segment, whose traffic is not counted"
    for node in here:
        elsewhere = {device for device, place in known.devices[node].items() if place != segment}
        if not elsewhere <= known.covered(node):
            return "a node's interfaces are counted together"
    return ""


def _negative(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(-pl.col("packets"), -pl.col("bytes"))


def added(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Adds up packets and bytes by sample; `whole` is true if every part has a row with `whole`."""
    every = pl.concat([NONE, *parts], how="vertical_relaxed")
    sums = every.group_by("sample").agg(pl.col("packets", "bytes").sum(), pl.col("whole").all(), n=pl.len())
    return sums.with_columns(whole=pl.col("whole") & (pl.col("n") == len(parts))).drop("n").sort("sample")
