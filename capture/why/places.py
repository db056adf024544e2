"""Finds the path of packets from node to node in the plan, and the position of each capture point on it.

A path is known if one route leads from each node to the next. It is unknown if links form a loop, if routes
are shared between neighbours or come from a routing daemon, on segments with a half-duplex medium, and if a
bridge VM or a NIC carries the link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address, ip_network

from contract.plan import Capture, Interface, Link, Node, Plan
from contract.plan.family import faces

MOST_HOPS = 64  # a route with more hops is a loop


@dataclass(frozen=True, slots=True)
class Element:
    """A node, a segment, or one direction of a link on a path."""

    kind: str  # node, segment, link
    name: str
    way: str = ""  # forward or reverse, for links only

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" {self.way}" if self.way else "")


Way = tuple[Element, ...]


class Places:
    """Finds paths of packets in a plan's network."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = {node.name: node for node in plan.nodes}
        self._cards = {card.address: (node, card) for node in plan.nodes for card in faces(node.interfaces)}
        self._links = plan.links
        self._captures = plan.captures
        self._media = {link.a for link in plan.links if link.kind == "medium"}
        self.way = cache(self._way)
        self.positions = cache(self._positions)

    def owner(self, address: str) -> str | None:
        """Returns the name of the node with that address; None if no node has it."""
        found = self._cards.get(address)
        return found[0].name if found else None

    def _way(self, source: str, to: str) -> Way | None:
        """Returns the elements from the node `source` to the node with the address `to`, both included; None
        if the path is not known.
        """
        found: list[Element] = []
        node = self._nodes[source]
        for _ in range(MOST_HOPS):
            found.append(Element("node", node.name))
            if self.owner(to) == node.name:
                return tuple(found)
            via = self._next(node, to)
            step = self._inside(node, via) if via else None
            if via is None or step is None:
                return None
            found += step
            node = self._cards[via][0]
        return None

    def _next(self, node: Node, to: str) -> str | None:
        """Returns the address of the next node on the path to an address: the address itself if it is in a
        subnet of the node.
        """
        if self._card(node, to):
            return to
        number = ip_address(to)
        fits = [
            (ip_network(net).prefixlen, route.via)
            for route in node.routes
            for net in route.to
            if number in ip_network(net)
        ]
        via = max(fits, default=(0, ()))[1]
        return via[0] if len(via) == 1 and via[0] in self._cards else None

    def _card(self, node: Node, to: str) -> Interface | None:
        number = ip_address(to)
        for card in faces(node.interfaces):
            if number in ip_network(f"{card.address}/{card.prefix}", strict=False):
                return card
        return None

    def _inside(self, node: Node, via: str) -> list[Element] | None:
        """Returns the segments and links between a node and its neighbour with the address `via`."""
        card = self._card(node, via)
        other, there = self._cards.get(via, (None, None))
        if card is None or other is None or there is None:
            return None
        wire = next((one for one in self._links if one.kind == "nodes" and one.name == card.segment), None)
        if wire is not None:
            return [_direction(wire, node.name)] if _plain(wire) else None
        between = self._between(card.segment, there.segment)
        if between is None:
            return None
        first, last = self._access(node.name, card.segment), self._access(other.name, there.segment)
        if not all(_plain(one) for one in (first, last) if one):
            return None
        found = [Element("link", first.name, "forward")] if first else []
        return found + between + ([Element("link", last.name, "reverse")] if last else [])

    def _access(self, node: str, segment: str) -> Link | None:
        fits = (one for one in self._links if one.kind == "access" and (one.a, one.b) == (node, segment))
        return next(fits, None)

    def _between(self, start: str, goal: str) -> list[Element] | None:
        """Returns the segments and links from one segment to another; None if there are two such paths."""
        found: list[list[Element]] = []
        waiting: list[tuple[str, list[Element]]] = [(start, [])]
        while waiting and len(found) < 2:
            segment, so_far = waiting.pop()
            so_far = [*so_far, Element("segment", segment)]
            if segment in self._media:
                return None
            if segment == goal:
                found.append(so_far)
                continue
            for link in self._links:
                if link.kind != "segments" or segment not in (link.a, link.b):
                    continue
                far = link.b if segment == link.a else link.a
                if Element("segment", far) in so_far:
                    continue
                if not _plain(link):
                    return None
                waiting.append((far, [*so_far, _direction(link, segment)]))
        return found[0] if len(found) == 1 else None

    def _positions(self, way: Way) -> dict[str, int]:
        """Returns for each capture point on the path the index of the last element that a packet has passed
        when the point records it.
        """
        found = {one.name: _position(one, way, self._nodes) for one in self._captures}
        return {name: place for name, place in found.items() if place is not None}


def _plain(link: Link) -> bool:
    return not (link.half_duplex or link.trunk) and link.forward.enter is None and link.nics is None


def _direction(link: Link, begin: str) -> Element:
    return Element("link", link.name, "forward" if begin == link.a else "reverse")


def _position(point: Capture, way: Way, nodes: dict[str, Node]) -> int | None:
    """Returns the position of a capture point; None if it is not on the path.

    A node's port is between the node (with its own link) and its first segment. A bridge shows a frame when
    the frame enters the segment. A link's device shows frames when they have passed the link (orchestrator's
    capture_point).
    """
    kind, _, target = point.at.partition(" ")
    if kind != "node":
        return next((n for n, one in enumerate(way) if (one.kind, one.name) == (kind, target)), None)
    home = nodes[target].interfaces[0].segment
    here = next((n for n, one in enumerate(way) if one == Element("node", target)), None)
    if here is None:
        return None
    coming = next((n for n in range(here, -1, -1) if way[n].kind == "segment"), None)
    going = next((n for n in range(here, len(way)) if way[n].kind == "segment"), None)
    if going is not None and way[going].name == home and _until_node(way, here, going):
        return going - 1
    if coming is not None and way[coming].name == home and _until_node(way, coming, here):
        return here - 1
    return next((n for n in (here + 1, here - 1) if 0 <= n < len(way) and way[n].name == home), None)


def _until_node(way: Way, first: int, last: int) -> bool:
    """Returns whether no other node lies between two positions."""
    return all(one.kind != "node" for one in way[first + 1 : last])
