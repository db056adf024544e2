"""Computes the least delay between the nodes and segments of a lab from the plan's links and the run's
changes of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import polars as pl

from capture.conservation.evidence import Evidence
from contract import events
from contract.plan import WAYS, Impairment, Link, Plan

# jitters by which a delay exceeds the mean at most, by the distribution's table (tc-netem(8): 32,767 / 8,192)
REACH = 4
Ways = dict[str, dict[str, int]]  # least delays (ns) from each node or segment to each of its neighbours


def homes(plan: Plan) -> dict[str, str]:
    """Maps each endpoint to its place, "node NAME"."""
    return {endpoint: f"node {name}" for endpoint, name in plan.homes().items()}


def brokers(plan: Plan) -> dict[str, str]:
    """Maps each endpoint whose broker's address belongs to a node of the lab to this node's place, "node
    NAME".
    """
    owners = {
        address: f"node {node.name}"
        for node in plan.nodes
        for card in node.interfaces
        for address in card.addresses
    }
    return {
        session.endpoint: owners[broker]
        for _, role, session in plan.sessions()
        if (broker := role.spec.get("broker")) in owners
    }


def least_delays(e: Evidence) -> dict[tuple[str, str], int]:
    """Returns the least delay (ns) of each link and direction over the whole run, changes by events included;
    0 where a trace or a medium sets the delay.
    """
    least: dict[tuple[str, str], int] = {}
    for name, way, impairment in [*e.plan.impairments(), *_by_hand(e)]:
        soonest = soonest_ns(impairment)
        least[name, way] = min(least.get((name, way), soonest), soonest)
    for link in e.plan.links:
        for way in WAYS:
            if link.way(way).trace is not None or link.kind == "medium":
                least[link.name, way] = 0
    return least


def ways(e: Evidence) -> Ways:
    """Returns the least delay (ns) between neighbouring nodes and segments over the whole run; 0 between a
    node and the segment of an interface without an access link.
    """
    least = least_delays(e)
    found: Ways = {}
    on_links = set()
    for link in e.plan.links:
        a, b = ends(link)
        if link.kind == "access":
            on_links.add((a, b))
        for way, here, there in (("forward", a, b), ("reverse", b, a)):
            _join(found, here, there, least[link.name, way])
    wires = {link.name for link in e.plan.links if link.kind == "nodes"}
    for node in e.plan.nodes:
        for card in node.interfaces:
            if card.segment in wires:
                continue
            a, b = f"node {node.name}", f"segment {card.segment}"
            if (a, b) not in on_links:
                _join(found, a, b, 0)
                _join(found, b, a, 0)
    return found


def _by_hand(e: Evidence) -> Iterator[tuple[str, str, Impairment]]:
    """Yields link, direction and impairment of each recorded `impair` event of the run, failed ones
    included.
    """
    if e.events is None:
        return
    rows = e.events.filter(pl.col("action") == "impair").select("targets", "args")
    for targets, args in rows.iter_rows():
        for way, one in events.impairments(args):
            yield from ((target, way, one) for target in targets)


def soonest_ns(impairment: Impairment) -> int:
    """Returns the least delay (ns) of an impairment: the delay less its jitter for the uniform distribution,
    else less four times the jitter, at least 0; 0 with reordering or slots.
    """
    if impairment.reorder or impairment.slot:
        return 0
    reach = 1 if impairment.distribution == "uniform" else REACH
    return max(0, impairment.delay_ns - reach * impairment.jitter_ns)


def ends(link: Link) -> tuple[str, str]:
    """Returns the two places that a link joins, each as "node NAME" or "segment NAME"."""
    a, b = ("node", "node") if link.kind == "nodes" else ("segment", "segment")
    a = "node" if link.kind == "access" else a
    return f"{a} {link.a}", f"{b} {link.b}"


def _join(ways: Ways, a: str, b: str, ns: int) -> None:
    near = ways.setdefault(a, {})
    near[b] = min(near.get(b, ns), ns)


class LeastDelays:
    """The least delays between places, computed when they are first asked for."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._known: dict[str, dict[str, int]] = {}

    def between(self, start: str, end: str) -> int | None:
        """Returns the least delay (ns) from one place to another; None if there is no way.

        All ways from a place with one neighbour lead through it, so the many nodes at one segment share the
        segment's delays.
        """
        if start == end:
            return 0
        near = self._ways.get(start, {})
        if len(near) != 1:
            return self._from(start).get(end)
        ((neighbour, ns),) = near.items()
        rest = self._from(neighbour).get(end)
        return None if rest is None else ns + rest

    def _from(self, start: str) -> dict[str, int]:
        if start not in self._known:
            self._known[start] = least_from(self._ways, start)
        return self._known[start]


def least_from(ways: Ways, start: str) -> dict[str, int]:
    """Returns the least delay (ns) from `start` to every place that can be reached, by Dijkstra's
    algorithm.
    """
    known: dict[str, int] = {}
    edge: list[tuple[int, str]] = [(0, start)]
    while edge:
        ns, place = heapq.heappop(edge)
        if place in known:
            continue
        known[place] = ns
        near: Iterable[tuple[str, int]] = ways.get(place, {}).items()
        for other, more in near:
            if other not in known:
                heapq.heappush(edge, (ns + more, other))
    return known
