"""Follows the path of packets between two nodes, hop by hop, through the plan's routing tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network

from contract.plan import Direction, Interface, Link, Node, Plan
from contract.plan.family import BITS, FAMILIES, Family, faces, family, reaching, spoken_to

from .segment_paths import FULL_FRAME_BYTES, SegmentPaths, one_way_ns
from .slots import Tables
from .vrfs import vrf_of

MOST_HOPS = 255  # a packet's time to live has eight bits
MOST_PAIRS = 200


@dataclass(frozen=True, slots=True)
class Path:
    """The path from one node to an address of another node."""

    nodes: tuple[str, ...]  # first the sender, last the receiver
    addresses: tuple[str, ...]  # address at which the packet enters each node after the first
    directions: tuple[Direction, ...]  # directions of links, in path order
    tables: Tables = field(default_factory=dict, compare=False, repr=False)  # the plan's tables of delays

    def delay_ns(self, frame_bytes: int = FULL_FRAME_BYTES) -> int:
        """Returns the mean one-way delay (ns) of a frame of that size without other traffic; the default is a
        full frame.
        """
        return sum(one_way_ns(d.impairment, frame_bytes, self.tables) for d in self.directions)

    @property
    def jitter_ns(self) -> int:
        """The sum (ns) of the links' jitters and longest slots, an estimate of the spread of the delay."""
        ways = [d.impairment for d in self.directions]
        return sum(i.jitter_ns + (i.slot.max_ns if i.slot is not None else 0) for i in ways)

    @property
    def bottleneck_bps(self) -> int:
        """The lowest rate (bit/s) of the links on the path; 0 if no link has a rate."""
        return min((d.impairment.rate_bps for d in self.directions if d.impairment.rate_bps), default=0)


@dataclass(frozen=True, slots=True)
class Hop:
    """The step from a node to a neighbouring node: the interface at each end, the delay of the way there and
    back (ns), and the link directions on the way.
    """

    node: str  # the neighbour
    here: Interface
    there: Interface
    round_ns: int
    ways: tuple[Direction, ...] = ()


class Paths:
    """Finds paths through a network by the plan's static routes. It does not know routes that routing daemons
    add.
    """

    @classmethod
    def of(cls, plan: Plan) -> Paths:
        return cls(plan.nodes, plan.links, plan.tables)

    def __init__(self, nodes: Sequence[Node], links: Sequence[Link], tables: Tables) -> None:
        self._tables = tables
        self._nodes = {node.name: node for node in nodes}
        self._wires = {link.name: link for link in links if link.kind == "nodes"}
        self._owner = {
            card.address: (node.name, card)
            for node in nodes
            for card in faces(node.interfaces)
            if card.address
        }
        self._inside = SegmentPaths(links)
        self._table = cache(self._lookup)

    def address_of(self, node: str, seen_from: str) -> str:
        """Returns the address under which the node `seen_from` reaches `node`."""
        return spoken_to(self._nodes[node].interfaces, self._nodes[seen_from].interfaces)

    def addresses_of(self, node: str, seen_from: str) -> list[str]:
        """Returns the addresses under which `seen_from` reaches `node`, first the one that software uses; one
        for each family that both nodes have.
        """
        theirs, ours = self._nodes[node].interfaces, self._nodes[seen_from].interfaces
        found = (reaching(theirs, ours, kind) for kind in FAMILIES)
        return list(dict.fromkeys([self.address_of(node, seen_from), *(one for one in found if one)]))

    def between(self, a: str, b: str) -> Path | None:
        """Returns the path from node `a` to node `b`; None if they are the same node, or the routes do not
        lead there.
        """
        return None if a == b else self.to(a, self.address_of(b, a))

    def bottleneck_bps(self, a: str, b: str) -> int:
        """Returns the lowest requested rate (bit/s) of the links from one node to another; 0 without a rate
        or a known path.
        """
        path = self.between(a, b)
        return 0 if path is None else path.bottleneck_bps

    def to(self, a: str, address: str) -> Path | None:
        """Returns the path from node `a` to an address; of several next hops it takes the first. None if the
        routes do not lead there over forwarding nodes and in at most 255 hops.
        """
        goal = self._owner.get(address)
        nodes, addresses = [a], list[str]()
        directions = list[Direction]()
        table = ""  # the VRF in which the packet is
        while goal is not None and nodes[-1] != goal[0] and len(nodes) <= MOST_HOPS:
            here = self._nodes[nodes[-1]]
            if here.name != a and not here.forward:
                return None
            near = self._card_to(here, address)
            via = address if near and vrf_of(here, near.name) == table else None
            via = via or self._gateway(here, address, table)
            step = None if via is None else self._step(here, via)
            if via is None or step is None:
                return None
            nodes.append(self._owner[via][0])
            table = vrf_of(self._nodes[nodes[-1]], self._owner[via][1].name)
            addresses.append(via)
            directions += step
        if goal is None or nodes[-1] != goal[0]:
            return None
        return Path(tuple(nodes), tuple(addresses), tuple(directions), self._tables)

    def hop(self, node: str, via: str, frame_bytes: int) -> Hop | None:
        """Returns the hop to a neighbour's address; None if the address belongs to no neighbour, or either
        direction has no known path.
        """
        there = self._step(self._nodes[node], via)
        if there is None:
            return None
        name, far = self._owner[via]
        here = self._card_to(self._nodes[node], via)
        back = self._step(self._nodes[name], here.address) if here is not None and here.address else None
        if here is None or back is None:
            return None
        ways = Path((node, name, node), (via, here.address), (*there, *back), self._tables)
        return Hop(name, here, far, ways.delay_ns(frame_bytes), (*there, *back))

    def _card_to(self, node: Node, address: str) -> Interface | None:
        """Returns the node's first interface in the subnet of an address, and its address there. The address
        must be a node's. None if the node has no interface in that subnet.
        """
        subnet = self._owner[address][1].subnet
        return next((card for card in faces(node.interfaces) if card.subnet == subnet), None)

    def _gateway(self, node: Node, address: str, vrf: str) -> str | None:
        """Returns the first next hop of the route with the longest matching prefix; None without a matching
        route.
        """
        kind = family(address)
        number, table, bits = int(ip_address(address)), self._table(node.name, vrf, kind), BITS[kind]
        for prefix in sorted(table, reverse=True):
            if (via := table[prefix].get(number >> (bits - prefix))) is not None:
                return via
        return None

    def _lookup(self, node: str, vrf: str, kind: Family) -> dict[int, dict[int, str]]:
        """Returns the routes of one table and family of a node: prefix length -> prefix -> first next hop."""
        table: dict[int, dict[int, str]] = {}
        tables = {one.name: one.routes for one in self._nodes[node].vrfs}
        for route in tables[vrf] if vrf else self._nodes[node].routes:
            for to in route.to:
                if family(to) == kind:
                    prefix, bits = _prefix(to)
                    table.setdefault(prefix, {})[bits] = route.via[0]
        return table

    def _step(self, node: Node, via: str) -> tuple[Direction, ...] | None:
        """Returns the directions of links from a node to a neighbour's address; None if there is no known
        path.
        """
        if via not in self._owner or (here := self._card_to(node, via)) is None:
            return None
        other, there = self._owner[via]
        wire = self._wires.get(here.segment)
        if wire is not None:
            return (wire.forward if wire.a == node.name else wire.reverse,)
        return self._inside.directions(node.name, here.segment, other, there.segment)


@cache
def _prefix(subnet: str) -> tuple[int, int]:
    """Returns the prefix length of a subnet, and its prefix as a number. The result is cached, since hundreds
    of routers may have a route to the same subnet.
    """
    network = ip_network(subnet)
    return network.prefixlen, int(network.network_address) >> (network.max_prefixlen - network.prefixlen)


def pairs(plan: Plan) -> list[tuple[Node, Node]]:
    """Returns all pairs of groups, each group represented by its first node, for predictions and tables of
    paths.

    Leaves out bridge VMs, and groups that are only routers if two other groups remain. Samples 200 pairs
    evenly if there are more, so that the sample covers every part of the network.
    """
    first: dict[str, Node] = {}
    for node in plan.nodes:
        if node.vm is None or not node.vm.netem:
            first.setdefault(node.group, node)
    ends = [n for n in first.values() if not n.forward or any(s.role != "router" for s in n.software)]
    chosen = ends if len(ends) > 1 else list(first.values())
    total = math.comb(len(chosen), 2)
    count = min(total, MOST_PAIRS)
    places = (unranked(len(chosen), k * total // count) for k in range(count))
    return [(chosen[i], chosen[j]) for i, j in places]


def unranked(n: int, place: int) -> tuple[int, int]:
    """Returns the pair at index `place` of itertools.combinations(range(n), 2)."""
    i = n - 2 - (math.isqrt(4 * n * (n - 1) - 8 * place - 7) - 1) // 2
    return i, place + i + 1 - math.comb(n, 2) + math.comb(n - i, 2)
