"""Computes the goodput of links: the payload that crossed each direction, from a capture that saw it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import polars as pl

from contract.plan import Plan
from contract.plan.family import faces
from reports.metrics.sizes import scan
from reports.roles import Span, phases
from reports.rundir import Run

Useful = tuple[float, int, str]  # bit/s of payload, packets, capture point


def crossing(
    run: Run, links: Iterable[str], lossy: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str], Useful]:
    """Returns the goodput over the hold by link and direction, for the named links that captured TCP or UDP
    packets crossed; empty without a hold.

    A packet crosses a link if its source and destination are on different sides. Each direction is measured
    at the capture that saw most such packets. Retransmissions are left out, so each byte counts once. `lossy`
    names directions that dropped packets: a capture on the sending side of one does not count if it saw
    datagrams, because some of them did not cross the link.
    """
    wanted, span = set(links), phases(run).get("hold")
    if span is None or not wanted:
        return {}
    found: dict[tuple[str, str], Useful] = {}
    for point, path in run.captures.items():
        pairs = _pairs(path, span)
        for link in run.plan.links:
            if link.name not in wanted or pairs is None:
                continue
            near = addresses_behind(run.plan, link.name)
            side = _side(run.plan, point, link.name)
            for direction in ("forward", "reverse"):
                rows = _from_side(pairs, near, direction == "forward")
                packets = int(rows.get_column("packets").sum())
                before = side == ("first" if direction == "forward" else "second")
                if before and (link.name, direction) in lossy and rows.get_column("datagrams").sum():
                    continue
                best = found.get((link.name, direction))
                if packets and (best is None or packets > best[1]):
                    bps = 8 * int(rows.get_column("payload").sum()) / span.seconds
                    found[link.name, direction] = (bps, packets, point)
    return found


def _pairs(path: Path, span: Span) -> pl.DataFrame | None:
    """Returns the columns src, dst, packets, payload (bytes), datagrams (number of UDP packets) of TCP and
    UDP, without retransmissions; None if the capture has no addresses.
    """
    rows = scan(path, span)
    if not {"src", "dst"} <= set(rows.collect_schema().names()):
        return None
    again = pl.col("retransmission").fill_null(False)
    first = rows.filter(pl.col("protocol").is_in(["tcp", "udp"]) & ~again)
    payload = pl.col("payload_bytes").cast(pl.Int64).sum()
    udp = (pl.col("protocol") == "udp").sum()
    return first.group_by("src", "dst").agg(packets=pl.len(), payload=payload, datagrams=udp).collect()


def _from_side(pairs: pl.DataFrame, near: set[str], from_near: bool) -> pl.DataFrame:
    src, dst = pl.col("src").is_in(list(near)), pl.col("dst").is_in(list(near))
    return pairs.filter(src & ~dst if from_near else ~src & dst)


def addresses_behind(plan: Plan, name: str) -> set[str]:
    """Returns the addresses on the first side of the link: those that are reachable from there without the
    link.
    """
    seen, skip, own = _behind(plan, name)
    return {
        face.address
        for node in plan.nodes
        for face in faces(node.interfaces)
        if (node.name if {node.name, face.segment} == skip or face.segment == own else face.segment) in seen
    }


def _side(plan: Plan, point: str, name: str) -> str:
    """Returns the side of the link on which a capture point is: "first" or "second"; empty at the link
    itself, at one of its end nodes, or at an unknown place.
    """
    kind, _, at = next((c.at for c in plan.captures if c.name == point), "").partition(" ")
    link = next(link for link in plan.links if link.name == name)
    if (kind == "link" and at == name) or (kind == "node" and at in (link.a, link.b)):
        return ""
    if kind == "link":
        at = next((other.a for other in plan.links if other.name == at), "")
    return ("first" if at in _behind(plan, name)[0] else "second") if at else ""


def _behind(plan: Plan, name: str) -> tuple[set[str], set[str], str]:
    """Returns the nodes and segments on the first side of the link, the link's two ends, and the name of the
    segment that the link itself forms ("" if it forms none).

    A node connects two segments only if it forwards packets; a host with interfaces on both sides has an
    address on each.
    """
    edges: dict[str, set[str]] = {}
    start, skip, own = "", {""}, ""
    nodes = plan.nodes
    for link in plan.links:
        a, b = link.a, link.b
        if link.name == name:
            start, skip, own = a, {a, b}, name if link.kind == "nodes" else ""
        else:
            edges.setdefault(a, set()).add(b)
            edges.setdefault(b, set()).add(a)
    faces = [(n.name, f.segment, f.address) for n in nodes for f in n.interfaces]
    for node, segment, _ in faces:
        # A node's own link replaces its place on the segment; a link of two nodes is a network itself.
        if {node, segment} != skip and segment != own:
            edges.setdefault(node, set()).add(segment)
            edges.setdefault(segment, set()).add(node)
    return _reached(edges, start, ends={n.name for n in nodes if not n.forward}), skip, own


def _reached(edges: dict[str, set[str]], start: str, ends: set[str]) -> set[str]:
    """Returns the nodes and segments that can be reached from `start`; paths end at nodes in `ends`."""
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        new = set() if here in ends else edges.get(here, set()) - seen
        seen |= new
        todo += sorted(new)
    return seen
