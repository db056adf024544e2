"""Routes of a plan's nodes: computed over its links wherever nodes forward, or as the file writes them."""

from __future__ import annotations

from ..model import Direction, Interface, Route
from ..topology.document import File, Routing
from ..topology.expansion import Expansion
from ..topology.network import Route as FileRoute
from .network import Network
from .routes import Graph, Hop, Tables
from .segment_paths import FULL_FRAME_BYTES, SegmentPaths

HOP_BITS = 20  # hops are counted below the cost: of ways that cost the same the one of fewer hops is shorter


def plan_routes(model: File, names: Expansion, network: Network) -> dict[str, tuple[Route, ...]]:
    """By node; nothing of those that have none."""
    routing = model.routing or Routing.model_validate({})
    found: dict[str, tuple[Route, ...]] = {}
    written = {node: machine.routes for node, machine in names.nodes.items() if machine.routes is not None}
    if routing.by != "none" and any(machine.forward for machine in names.nodes.values()):
        tables = Tables(_graph(names, network, routing), routing.ecmp)
        found = {node: tables.of(node) for node in names.nodes if node not in written}
    for node, routes in written.items():
        found[node] = tuple(_written(network, node, route) for route in routes)
    return {node: routes for node, routes in found.items() if routes}


def _written(network: Network, node: str, route: FileRoute) -> Route:
    return Route(
        (route.to,), tuple(via if via[0].isdigit() else network.address_of(via, node) for via in route.via)
    )


def _graph(names: Expansion, network: Network, routing: Routing) -> Graph:
    forwards = frozenset(node for node, machine in names.nodes.items() if machine.forward)
    costs = _Costs(network, routing)
    graph = Graph(forwards=forwards)
    on: dict[str, list[tuple[str, Interface]]] = {}  # subnet -> routers' interfaces
    for node, cards in network.interfaces.items():
        graph.subnets[node] = frozenset(network.subnets[card.segment] for card in cards)
        for card in cards if node in forwards else ():
            on.setdefault(network.subnets[card.segment], []).append((node, card))
    for node, cards in network.interfaces.items():
        graph.hops[node] = [
            Hop(other, there.address, costs.of((node, here), (other, there)))
            for here in cards
            for other, there in on.get(network.subnets[here.segment], ())
            if other != node
        ]
    return graph


class _Costs:
    """What a hop costs, by the file's choice."""

    def __init__(self, network: Network, routing: Routing) -> None:
        self._routing, self._network = routing, network
        self._wires = {link.name: link for link in network.links if link.kind == "nodes"}
        self._segments = SegmentPaths(network.links)

    def of(self, a: tuple[str, Interface], b: tuple[str, Interface]) -> int:
        delay, cost = self._hop(a, b)
        if self._routing.by == "delay":
            return (delay << HOP_BITS) + 1
        if self._routing.ecmp:  # as a routing daemon has it: nothing else counts
            return 1 if self._routing.by == "hops" else cost
        if self._routing.by == "hops":
            return (1 << 2 * HOP_BITS) + delay // 1000
        return (cost << HOP_BITS) + 1

    def _hop(self, a: tuple[str, Interface], b: tuple[str, Interface]) -> tuple[int, int]:
        """Time of a full frame and cost, from a node's interface to another's in the same subnet."""
        (node, here), (other, there) = a, b
        link = self._wires.get(here.segment)
        if link is not None:
            return _frame_ns(link.forward if link.a == node else link.reverse), link.cost
        way = self._segments.directions(node, here.segment, other, there.segment) or ()
        return sum(map(_frame_ns, way)), 1


def _frame_ns(direction: Direction) -> int:
    """Delay, and the time that a full frame takes at the rate, whatever kind of queue has it."""
    wanted = direction.impairment
    return wanted.delay_ns + (FULL_FRAME_BYTES * 8 * 10**9 // wanted.rate_bps if wanted.rate_bps else 0)
