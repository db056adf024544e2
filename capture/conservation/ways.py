"""The least delay from each node and segment to every other, by the links of the plan."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from capture.conservation.evidence import Evidence

REACH = 4  # jitters that a distribution's table reaches at most (tc-netem(8): 32,767 / 8,192)
Ways = dict[str, dict[str, int]]  # from a node or segment to its neighbours: ns


def homes(plan: dict[str, Any]) -> dict[str, str]:
    """The node of each endpoint."""
    return {
        str(role["session"]["endpoint"]): f"node {node['name']}"
        for node in plan.get("nodes", ())
        for role in node.get("software", ())
        if role.get("session")
    }


def brokers(plan: dict[str, Any]) -> dict[str, str]:
    """The node of the broker that each endpoint speaks to, by its address."""
    owners = {
        card["address"]: f"node {node['name']}"
        for node in plan.get("nodes", ())
        for card in node.get("interfaces", ())
    }
    return {
        str(role["session"]["endpoint"]): owners[broker]
        for node in plan.get("nodes", ())
        for role in node.get("software", ())
        if role.get("session") and (broker := (role.get("spec") or {}).get("broker")) in owners
    }


def impairments(plan: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Link, direction and each impairment that the file ever asks for."""
    for link in plan.get("links", ()):
        yield from ((link.get("name"), way, link[way]["impairment"]) for way in ("forward", "reverse"))
    for event in plan.get("events", ()):
        if event["action"] == "impair":
            both = [(way, event["args"].get(way)) for way in ("forward", "reverse")]
            yield from ((target, way, set_) for target in event["targets"] for way, set_ in both if set_)


def least_delays(e: Evidence) -> dict[tuple[str, str], int]:
    """The least delay of each link and direction over the whole run; 0 where a trace or a medium sets it."""
    least: dict[tuple[str, str], int] = {}
    for link, way, impairment in [*impairments(e.plan), *_by_hand(e)]:
        soonest = soonest_ns(impairment)
        least[link, way] = min(least.get((link, way), soonest), soonest)
    for link in e.plan.get("links", ()):
        for way in ("forward", "reverse"):
            if link[way].get("trace") is not None or link.get("kind") == "medium":
                least[link.get("name"), way] = 0
    return least


def ways(e: Evidence) -> Ways:
    """Least delays between neighbours, over the whole run."""
    least = least_delays(e)
    found: Ways = {}
    on_links = set()
    for link in e.plan.get("links", ()):
        if "a" not in link or "b" not in link:
            continue
        a, b = ends(link)
        if link.get("kind") == "access":
            on_links.add((a, b))
        for way, here, there in (("forward", a, b), ("reverse", b, a)):
            _join(found, here, there, least[link.get("name"), way])
    wires = {link.get("name") for link in e.plan.get("links", ()) if link.get("kind") == "nodes"}
    for node in e.plan.get("nodes", ()):
        for card in node.get("interfaces", ()):
            if card["segment"] in wires:
                continue
            a, b = f"node {node['name']}", f"segment {card['segment']}"
            if (a, b) not in on_links:
                _join(found, a, b, 0)
                _join(found, b, a, 0)
    return found


def _by_hand(e: Evidence) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Impairments that commands changed while the lab ran, by its events."""
    if e.events is None:
        return
    rows = e.events.filter(pl.col("action") == "impair").select("targets", "args")
    for targets, args in rows.iter_rows():
        both = json.loads(args)
        for way in ("forward", "reverse"):
            if isinstance(both.get(way), dict):
                yield from ((target, way, both[way]) for target in targets)


def soonest_ns(impairment: dict[str, Any]) -> int:
    """The least delay: netem's jitter can shorten the delay, and reordered packets have none."""
    if impairment.get("reorder") or impairment.get("slot"):
        return 0
    reach = 1 if impairment.get("distribution", "uniform") == "uniform" else REACH
    jitter = int(impairment.get("jitter_ns") or 0)
    return max(0, int(impairment.get("delay_ns") or 0) - reach * jitter)


def ends(link: dict[str, Any]) -> tuple[str, str]:
    """The places that a link joins: a node's own end for links of nodes."""
    a, b = ("node", "node") if link.get("kind") == "nodes" else ("segment", "segment")
    a = "node" if link.get("kind") == "access" else a
    return f"{a} {link['a']}", f"{b} {link['b']}"


def _join(ways: Ways, a: str, b: str, ns: int) -> None:
    near = ways.setdefault(a, {})
    near[b] = min(near.get(b, ns), ns)


def least_from(ways: Ways, start: str) -> dict[str, int]:
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
