"""Shortest ways: from nodes, what one hop between them costs and the subnets they are on, to routing tables.

Pure: knows neither links nor files. A cost is a whole number above 0, so that every hop comes nearer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

from ..model import Route
from ..model.family import BITS, EVERYWHERE, Family

# first address and prefix length of a subnet
Subnet = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hop:
    """From a node to a neighbour that forwards: the neighbour's address there, and the cost."""

    to: str
    via: str
    cost: int


@dataclass
class Graph:
    """Who can hand packets of one family to whom: every node to neighbours that forward."""

    family: Family = "IPv4"
    hops: dict[str, list[Hop]] = field(default_factory=dict)
    subnets: dict[str, frozenset[str]] = field(default_factory=dict)  # by node: those it is on
    forwards: frozenset[str] = frozenset()


class Tables:
    """The routing tables of a graph; `ecmp`: all equally short ways, else the first of them by address."""

    def __init__(self, graph: Graph, ecmp: bool = False) -> None:
        self._graph, self._ecmp = graph, ecmp
        numbers = {subnet: _number(subnet) for on in graph.subnets.values() for subnet in on}
        self._every = sorted(numbers, key=numbers.__getitem__)
        self._numbers = [numbers[subnet] for subnet in self._every]
        on: dict[str, list[str]] = {}
        for node in sorted(graph.forwards):
            for subnet in graph.subnets[node]:
                on.setdefault(subnet, []).append(node)
        self._routers = [on.get(subnet, []) for subnet in self._every]
        self._cost = {node: self._subnet_costs(node) for node in sorted(graph.forwards)}
        self._shared: dict[object, tuple[Route, ...]] = {}

    def of(self, node: str) -> tuple[Route, ...]:
        """The node's routes to all subnets that it is not on; a default route where all leave by one
        neighbour and the node forwards nothing. Nodes with equal hops share theirs.
        """
        hops, on = self._graph.hops.get(node, []), self._graph.subnets[node]
        forwards = node in self._graph.forwards
        key = (tuple(hops), on, forwards)
        if key not in self._shared:
            self._shared[key] = self._table(hops, on, forwards)
        return self._shared[key]

    def _table(self, hops: Sequence[Hop], on: frozenset[str], forwards: bool) -> tuple[Route, ...]:
        ordered = sorted(hops, key=lambda h: _order(h.via))
        columns = [[hop.cost + further for further in self._cost[hop.to]] for hop in ordered]
        tables: dict[tuple[str, ...], list[Subnet]] = {}
        for subnet, number, costs in zip(
            self._every, self._numbers, zip(*columns, strict=True), strict=False
        ):
            best = min(costs)
            if subnet in on or best == math.inf:
                continue
            via = [h.via for h, cost in zip(ordered, costs, strict=True) if cost == best]
            tables.setdefault(tuple(via if self._ecmp else via[:1]), []).append(number)
        if len(tables) == 1 and not forwards:
            return (Route((EVERYWHERE[self._graph.family],), next(iter(tables))),)
        kind = self._graph.family
        return tuple(
            Route(tuple(_text(subnet, kind) for subnet in merged(to, BITS[kind])), via)
            for via, to in sorted(tables.items())
        )

    def _subnet_costs(self, source: str) -> list[float]:
        """From a forwarding node to each subnet: to the nearest forwarding node on it, infinite if none."""
        reached = self._dijkstra(source)
        return [
            min([reached[r] for r in routers if r in reached], default=math.inf) for routers in self._routers
        ]

    def _dijkstra(self, source: str) -> dict[str, int]:
        nearest = {source: 0}
        waiting = [(0, source)]
        while waiting:
            cost, node = heapq.heappop(waiting)
            if cost > nearest[node]:
                continue
            for hop in self._graph.hops.get(node, ()):
                further = cost + hop.cost
                if further < nearest.get(hop.to, math.inf):
                    nearest[hop.to] = further
                    heapq.heappush(waiting, (further, hop.to))
        return nearest


def merged(subnets: Iterable[Subnet], bits: int) -> list[Subnet]:
    """The same addresses, of `bits` each, in fewer subnets: two halves of one become it. Subnets do not
    overlap.
    """
    found: list[Subnet] = []
    for first, prefix in sorted(subnets):
        while found and found[-1][1] == prefix and found[-1][0] == first ^ (1 << (bits - prefix)):
            first, prefix = found.pop()[0], prefix - 1
        found.append((first, prefix))
    return found


def _number(subnet: str) -> Subnet:
    network = ip_network(subnet)
    return int(network.network_address), network.prefixlen


def _text(subnet: Subnet, kind: Family) -> str:
    first, prefix = subnet
    if kind == "IPv6":
        return f"{IPv6Address(first)}/{prefix}"
    return f"{first >> 24}.{first >> 16 & 255}.{first >> 8 & 255}.{first & 255}/{prefix}"


def _order(address: str) -> int:
    return int(ip_address(address))
