"""Shortest ways: from nodes, what one hop between them costs and the subnets they are on, to routing tables.

Pure: knows neither links nor files. A cost is a whole number above 0, so that every hop comes nearer.
"""

from __future__ import annotations

import heapq
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
        every = sorted({s for on in graph.subnets.values() for s in on}, key=_number)
        self._number = {subnet: _number(subnet) for subnet in every}
        self._routers = {
            subnet: [n for n in sorted(graph.forwards) if subnet in graph.subnets[n]] for subnet in every
        }
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
        best: dict[str, tuple[int, list[str]]] = {}
        for hop in sorted(hops, key=lambda h: _order(h.via)):
            for subnet, further in self._cost[hop.to].items():
                if subnet in on:
                    continue
                cost, known = hop.cost + further, best.get(subnet)
                if known is None or cost < known[0]:
                    best[subnet] = (cost, [hop.via])
                elif cost == known[0] and self._ecmp:
                    known[1].append(hop.via)
        tables: dict[tuple[str, ...], list[Subnet]] = {}
        for subnet, (_, via) in best.items():
            tables.setdefault(tuple(via), []).append(self._number[subnet])
        if len(tables) == 1 and not forwards:
            return (Route((EVERYWHERE[self._graph.family],), next(iter(tables))),)
        kind = self._graph.family
        return tuple(
            Route(tuple(_text(subnet, kind) for subnet in merged(to, BITS[kind])), via)
            for via, to in sorted(tables.items())
        )

    def _subnet_costs(self, source: str) -> dict[str, int]:
        """From a forwarding node to each subnet: to the nearest forwarding node that is on it."""
        reached = self._dijkstra(source)
        return {
            subnet: min(costs)
            for subnet, routers in self._routers.items()
            if (costs := [reached[r] for r in routers if r in reached])
        }

    def _dijkstra(self, source: str) -> dict[str, int]:
        reached: dict[str, int] = {}
        waiting = [(0, source)]
        while waiting:
            cost, node = heapq.heappop(waiting)
            if node in reached:
                continue
            reached[node] = cost
            for hop in self._graph.hops.get(node, ()):
                if hop.to not in reached:
                    heapq.heappush(waiting, (cost + hop.cost, hop.to))
        return reached


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
