"""Plans the routes of nodes: computed from links if nodes forward, or as the file states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from contract.plan import Direction, Interface, Route
from contract.plan.family import DEFAULT, EVERYWHERE, FAMILIES, Family, faces, family, is_address

from ..topology.document import File, Routing
from ..topology.expansion import Expansion
from ..topology.nodes import Route as FileRoute
from .network import Network
from .routes import Graph, Hop, Tables
from .segment_paths import FULL_FRAME_BYTES, SegmentPaths
from .vrfs import key, parts

# the low bits of a cost count hops: of paths with equal costs, the one with fewer hops is shorter
HOP_BITS = 20


def plan_routes(model: File, names: Expansion, network: Network) -> dict[str, tuple[Route, ...]]:
    """Returns the routes by node, and by key of a VRF; those without routes are left out. A node with
    `routes` in the file has exactly these. The others have computed routes, unless no node forwards or the
    file says `by: none`.
    """
    routing = model.routing or Routing.model_validate({})
    found: dict[str, tuple[Route, ...]] = {}
    written = {node: machine.routes for node, machine in names.nodes.items() if machine.routes is not None}
    if routing.by != "none" and any(machine.forward for machine in names.nodes.values()):
        costs = _Costs(network, routing)
        for kind in sorted({family(subnet) for some in network.subnets.values() for subnet in some}):
            tables = Tables(_graph(names, network, costs, kind), routing.ecmp)
            for node in names.nodes.keys() - written.keys():
                for one in (node, *(key(node, vrf) for vrf in vrfs_of(names, node))):
                    found[one] = (*found.get(one, ()), *tables.of(one))
    for node, routes in written.items():
        found[node] = tuple(one for route in routes for one in _written(network, node, route))
    every = [key(node, vrf) for node in names.nodes for vrf in ("", *vrfs_of(names, node))]
    return {one: found[one] for one in every if found.get(one)}


def vrfs_of(names: Expansion, node: str) -> Mapping[str, Sequence[str]]:
    """Returns the segments and links of each VRF of a node; a group's nodes have none."""
    found: Mapping[str, Sequence[str]] = getattr(names.nodes[node], "vrf", {})
    return found


def _written(network: Network, node: str, route: FileRoute) -> Iterator[Route]:
    """Yields the plan's routes for one route of the file; a default route becomes one for each address
    family. A family in which no neighbour has an address gets none.
    """
    kinds = FAMILIES if route.to == DEFAULT else (family(route.to),)
    for kind in kinds:
        via = [one for name in route.via if (one := _neighbour(network, node, name, kind)) is not None]
        if via:
            yield Route((EVERYWHERE[kind] if route.to == DEFAULT else route.to,), tuple(via))


def _neighbour(network: Network, node: str, via: str, kind: Family) -> str | None:
    """Returns a neighbour's address of that family in a subnet that both share; None if there is none. `via`
    may be an address instead; it is returned if it is of that family.
    """
    if is_address(via):
        return via if family(via) == kind else None
    ours = {card.subnet for card in faces(network.interfaces[node])}
    theirs = [card for card in faces(network.interfaces[via]) if card.subnet in ours]
    return next((card.address for card in theirs if family(card.address) == kind), None)


def _graph(names: Expansion, network: Network, costs: _Costs, kind: Family) -> Graph:
    interfaces = {
        key(node, vrf): (node, [card for card in faces(own) if family(card.address) == kind])
        for node, cards in network.interfaces.items()
        for vrf, own in parts(vrfs_of(names, node), cards)
    }
    forwards = frozenset(one for one, (node, _) in interfaces.items() if names.nodes[node].forward)
    graph = Graph(kind, forwards=forwards)
    on: dict[str, list[tuple[str, str, Interface]]] = {}  # subnet -> routers' interfaces
    for one, (node, cards) in interfaces.items():
        graph.subnets[one] = frozenset(card.subnet for card in cards)
        for card in cards if one in forwards else ():
            on.setdefault(card.subnet, []).append((one, node, card))
    for one, (node, cards) in interfaces.items():
        graph.hops[one] = [
            Hop(there_key, there.address, costs.of((node, here), (other, there)))
            for here in cards
            for there_key, other, there in on.get(here.subnet, ())
            if other != node
        ]
    return graph


class _Costs:
    """Computes the cost of a hop by the metric that the file chooses: delay, hops or the links' costs."""

    def __init__(self, network: Network, routing: Routing) -> None:
        self._routing, self._network = routing, network
        self._wires = {link.name: link for link in network.links if link.kind == "nodes"}
        self._segments = SegmentPaths(network.links)

    def of(self, a: tuple[str, Interface], b: tuple[str, Interface]) -> int:
        delay, cost = self._hop(a, b)
        if self._routing.by == "delay":
            return (delay << HOP_BITS) + 1
        if self._routing.ecmp:  # routes with equal costs are all kept, as a routing daemon does
            return 1 if self._routing.by == "hops" else cost
        if self._routing.by == "hops":
            return (1 << 2 * HOP_BITS) + delay // 1000
        return (cost << HOP_BITS) + 1

    def _hop(self, a: tuple[str, Interface], b: tuple[str, Interface]) -> tuple[int, int]:
        """Returns the time in ns of a full frame and the cost, from one interface to another in the same
        subnet. The cost is that of the link between the two nodes, or 1 on segments; without a known path the
        time is 0.
        """
        (node, here), (other, there) = a, b
        link = self._wires.get(here.segment)
        if link is not None:
            return _frame_ns(link.forward if link.a == node else link.reverse), link.cost
        way = self._segments.directions(node, here.segment, other, there.segment) or ()
        return sum(map(_frame_ns, way)), 1


def _frame_ns(direction: Direction) -> int:
    """Returns the time in ns for a full frame: the direction's delay plus the time to send it at the
    direction's rate, for any kind of queue.
    """
    wanted = direction.impairment
    return wanted.delay_ns + (FULL_FRAME_BYTES * 8 * 10**9 // wanted.rate_bps if wanted.rate_bps else 0)
