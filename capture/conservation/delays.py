"""Compares the latency of messages with the delays of the links on their way."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.evidence import Evidence
from contract import events
from contract.plan import Impairment, Link, Plan

MESSAGE_DELAY = Rule(
    "message-delay", "latencies of messages", "the delays of the links on their shortest way",
    "times of this run's records are wrong, or a link let frames pass before their time: repeat the run",
    "at least",
)  # fmt: skip
NEAR_NS = (
    100_000  # each link's kernel timer fires early by at most this (kernel/time/hrtimer.c: timer slack 50 us)
)
REACH = 4  # jitters that a distribution's table reaches at most (tc-netem(8): 32,767 / 8,192)
Ways = dict[str, dict[str, int]]  # from a node or segment to its neighbours: ns


def none_is_too_soon(e: Evidence) -> Found:
    """The shortest latency of each flow and receiver, and the shortest round trip of each request: a message
    that goes by a broker or another way has no shorter one.
    """
    if why := e.unsuitable or _doubtful(e):
        return Found(left_out=[why])
    if e.messages is None:
        return Found(left_out=["no messages"])
    ways = _ways(e)
    homes = {endpoint: f"node {name}" for endpoint, name in e.plan.homes().items()}
    brokers = _brokers(e.plan)
    flows = e.messages.drop_nulls("receiver").group_by("name", "sender", "receiver", "pattern")
    least = flows.agg(pl.col("latency_ns").min(), pl.col("round_trip_ns").min()).sort("name", "receiver")
    known: dict[str, dict[str, int]] = {}
    compared = []
    for name, sender, receiver, pattern, there, both in least.iter_rows():
        stops = [homes.get(sender), homes.get(receiver)]
        if pattern == "publish" and (via := [brokers.get(sender), brokers.get(receiver)]) and all(via):
            stops[1:1] = via
        if None in stops:
            continue
        places = [str(stop) for stop in stops]
        for place in places:
            known.setdefault(place, _from(ways, place))
        out, back = _along(known, places), _along(known, places[::-1])
        if there is not None and out:
            compared.append(Compared(f"{name} to {receiver}", there, out, "ns", NEAR_NS))
        if both is not None and out and back:
            compared.append(Compared(f"{name}, reply of {receiver}", both, out + back, "ns", NEAR_NS))
    return Found(compared, [] if compared else ["no message has to cross a link with a delay"])


def _doubtful(e: Evidence) -> str:
    """Why a latency may be below the links' delay; "" if it may not."""
    nodes = e.plan.nodes
    if any(node.kind != "light" for node in nodes):
        return "the clocks of virtual machines are their own"
    if any(i.nic for node in nodes for i in node.interfaces):
        return "a NIC of the machine leads over a cable to an unknown end"
    if e.events is not None and e.events.filter(action="add").height:
        return "nodes and links were added while the lab ran"
    if any(one.corrupt for _, _, one in e.plan.impairments()):
        return "a link flips bits: a message's number becomes another's"
    return ""


def _brokers(plan: Plan) -> dict[str, str]:
    """The node of the broker that each endpoint speaks to, by its address."""
    owners = {card.address: f"node {node.name}" for node in plan.nodes for card in node.interfaces}
    return {
        session.endpoint: owners[broker]
        for _, role, session in plan.sessions()
        if (broker := role.spec.get("broker")) in owners
    }


def _along(known: dict[str, dict[str, int]], places: list[str]) -> int | None:
    """The least delay from each place to the next; None where one cannot be reached."""
    parts = [known[a].get(b) for a, b in itertools.pairwise(places)]
    return None if None in parts else sum(part for part in parts if part is not None)


def _ways(e: Evidence) -> Ways:
    """Least delays between neighbours, over the whole run."""
    asked = [*e.plan.impairments(), *_by_hand(e)]
    least: dict[tuple[str, str], int] = {}
    for name, way, impairment in asked:
        soonest = _soonest_ns(impairment)
        least[name, way] = min(least.get((name, way), soonest), soonest)
    found: Ways = {}
    on_links = set()
    for link in e.plan.links:
        a, b = _ends(link)
        if link.kind == "access":
            on_links.add((a, b))
        for way, here, there in (("forward", a, b), ("reverse", b, a)):
            traced = link.way(way).trace is not None or link.kind == "medium"
            _join(found, here, there, 0 if traced else least[link.name, way])
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
    """Impairments that commands changed while the lab ran, by its events."""
    if e.events is None:
        return
    rows = e.events.filter(pl.col("action") == "impair").select("targets", "args")
    for targets, args in rows.iter_rows():
        for way, one in events.impairments(args):
            yield from ((target, way, one) for target in targets)


def _soonest_ns(impairment: Impairment) -> int:
    """The least delay: netem's jitter can shorten the delay, and reordered packets have none."""
    if impairment.reorder or impairment.slot:
        return 0
    reach = 1 if impairment.distribution == "uniform" else REACH
    return max(0, impairment.delay_ns - reach * impairment.jitter_ns)


def _ends(link: Link) -> tuple[str, str]:
    a, b = ("node", "node") if link.kind == "nodes" else ("segment", "segment")
    a = "node" if link.kind == "access" else a
    return f"{a} {link.a}", f"{b} {link.b}"


def _join(ways: Ways, a: str, b: str, ns: int) -> None:
    near = ways.setdefault(a, {})
    near[b] = min(near.get(b, ns), ns)


def _from(ways: Ways, start: str) -> dict[str, int]:
    """The least delay to every place that can be reached (Dijkstra's)."""
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
