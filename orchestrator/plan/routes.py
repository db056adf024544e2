"""Computes routing tables by shortest paths, from the cost of each hop and the subnets of each node.

The module knows neither links nor files. A cost is a whole number above 0, so that every hop leads nearer.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

from contract.plan import Route
from contract.plan.family import BITS, EVERYWHERE, Family

# the first address and the prefix length of a subnet
Subnet = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop from a node to a forwarding neighbour: the neighbour, its address on the shared subnet, and the
    cost.
    """

    to: str
    via: str
    cost: int


@dataclass
class Graph:
    """The hops of one address family, from every node to its forwarding neighbours."""

    family: Family = "IPv4"
    hops: dict[str, list[Hop]] = field(default_factory=dict)
    # node -> the subnets to which it belongs
    subnets: dict[str, frozenset[str]] = field(default_factory=dict)
    forwards: frozenset[str] = frozenset()


class Tables:
    """The routing tables of a graph. `ecmp`: a route has all equally short next hops, else only the first by
    address.
    """

    def __init__(self, graph: Graph, ecmp: bool = False) -> None:
        self._graph, self._ecmp = graph, ecmp
        self._index = {node: index for index, node in enumerate(sorted(graph.forwards))}
        self._hops = [self._indexed(graph.hops.get(node, [])) for node in self._index]
        numbers = {subnet: _number(subnet) for on in graph.subnets.values() for subnet in on}
        on: dict[str, list[int]] = {}
        for node, index in self._index.items():
            for subnet in graph.subnets[node]:
                on.setdefault(subnet, []).append(index)
        every = sorted(numbers, key=numbers.__getitem__)
        self._reachable = [(subnet, numbers[subnet], on[subnet]) for subnet in every if subnet in on]
        self._shared: dict[object, tuple[Route, ...]] = {}

    def of(self, node: str) -> tuple[Route, ...]:
        """Returns the node's routes to each reachable subnet that has a forwarding node and to which the node
        itself is not connected; subnets with the same next hops are merged. A node that does not forward and
        would have only one route by its next hops gets a default route instead. Nodes with equal hops and
        subnets share one result.
        """
        hops, on = self._graph.hops.get(node, []), self._graph.subnets[node]
        forwards = node in self._graph.forwards
        key = (tuple(hops), on, forwards)
        if key not in self._shared:
            self._shared[key] = self._table(hops, on, forwards)
        return self._shared[key]

    def _table(self, hops: Sequence[Hop], on: frozenset[str], forwards: bool) -> tuple[Route, ...]:
        ordered = sorted(hops, key=lambda h: _order(h.via))
        costs, first = self._shortest(ordered)
        tables = defaultdict[int, list[Subnet]](list)  # bit set of the next hops -> subnets that these reach
        for subnet, number, routers in self._reachable:
            best = min([costs[router] for router in routers])
            if subnet in on or best == math.inf:
                continue
            leave = 0
            for router in routers:
                if costs[router] == best:
                    leave |= first[router]
            tables[leave if self._ecmp else leave & -leave].append(number)
        by_via = {
            tuple(h.via for bit, h in enumerate(ordered) if leave >> bit & 1): to
            for leave, to in tables.items()
        }
        if len(by_via) == 1 and not forwards:
            return (Route((EVERYWHERE[self._graph.family],), next(iter(by_via))),)
        kind = self._graph.family
        return tuple(
            Route(tuple(_text(subnet, kind) for subnet in merged(to, BITS[kind])), via)
            for via, to in sorted(by_via.items())
        )

    def _shortest(self, hops: Sequence[Hop]) -> tuple[list[float], list[int]]:
        """Returns, for a node with these hops, the cost to each forwarding node, and a bit set of the hops
        that begin a shortest path there (Dijkstra's algorithm: the bits of a node are final when it is taken
        from the heap).
        """
        costs: list[float] = [math.inf] * len(self._hops)
        first = [0] * len(self._hops)
        for bit, (to, cost) in enumerate(self._indexed(hops)):
            if cost < costs[to]:
                costs[to], first[to] = cost, 0
            if cost == costs[to]:
                first[to] |= 1 << bit
        waiting = [(cost, node) for node, cost in enumerate(costs) if cost < math.inf]
        heapq.heapify(waiting)
        while waiting:
            least, node = heapq.heappop(waiting)
            if least > costs[node]:
                continue
            ways = first[node]
            for to, further in self._hops[node]:
                reached = least + further
                if reached < costs[to]:
                    costs[to], first[to] = reached, ways
                    heapq.heappush(waiting, (reached, to))
                elif reached == costs[to]:
                    first[to] |= ways
        return costs, first

    def _indexed(self, hops: Iterable[Hop]) -> list[tuple[int, int]]:
        return [(self._index[hop.to], hop.cost) for hop in hops]


def merged(subnets: Iterable[Subnet], bits: int) -> list[Subnet]:
    """Returns the same addresses in fewer subnets by joining two halves of a larger subnet; `bits` is the
    length of an address. Subnets must not overlap.
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
