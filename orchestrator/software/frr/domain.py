"""Finds the neighbours of each router of a lab, and the subnets that each gets by OSPF and BGP."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address

from contract.plan import Interface
from contract.plan.family import FAMILIES, Family, family

from ..scene import Placed, Scene
from .file import Frr


@dataclass(frozen=True)
class Speaker:
    """A router that runs routing daemons, with its interfaces and its place among the lab's nodes."""

    placed: Placed
    cards: tuple[Interface, ...]  # in dual stack, one entry for each address of an interface
    place: int  # position among the lab's nodes, from 1

    @property
    def node(self) -> str:
        return self.placed.node

    @property
    def wanted(self) -> Frr:
        return self.placed.model.frr  # type: ignore[no-any-return]

    @property
    def autonomous_system(self) -> int | None:
        return self.wanted.bgp.as_number if self.wanted.bgp else None

    @property
    def router_id(self) -> str:
        first = self.first("IPv4")
        return self.wanted.router_id or (str(IPv4Address(self.place)) if first is None else first)

    def first(self, kind: Family) -> str | None:
        """Returns the router's first address of a family; None if it has none."""
        return next((card.address for card in self.cards if family(card.address) == kind), None)


@dataclass(frozen=True)
class Port:
    """An interface of a router, and the other routers of the same protocol on its subnet."""

    card: Interface
    subnet: str
    cost: int
    wire: bool  # whether the interface is on a link between two nodes
    others: tuple[tuple[Speaker, Interface], ...]


@dataclass
class Domain:
    """All routers of a lab whose configuration vNET generates."""

    scene: Scene
    speakers: Sequence[Speaker]
    _on: dict[str, list[tuple[Speaker, Interface]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for speaker in self.speakers:
            for card in speaker.cards:
                self._on.setdefault(card.subnet, []).append((speaker, card))

    def ospf_ports(self, speaker: Speaker) -> list[Port]:
        """Returns all interfaces of a router, each with its OSPF neighbours: routers of the same AS or
        without one; any OSPF router if it has no BGP itself.
        """
        ours = speaker.autonomous_system
        return self._ports(
            speaker,
            lambda o: o.wanted.ospf is not None and (ours is None or o.autonomous_system in (ours, None)),
        )

    def bgp_ports(self, speaker: Speaker) -> list[Port]:
        return self._ports(speaker, lambda o: o.wanted.bgp is not None)

    def fellows(self, speaker: Speaker) -> list[Speaker]:
        """Returns the other routers of the same AS; an empty list if the router has no AS."""
        ours = speaker.autonomous_system
        return [o for o in self.speakers if o is not speaker and o.autonomous_system == ours is not None]

    def costs(self, speaker: Speaker) -> dict[str, int]:
        """Returns the OSPF cost of the shortest path to each subnet (RFC 2328, 16.1), the last interface's
        cost included; each family apart (RFC 5340).
        """
        return {subnet: cost for kind in FAMILIES for subnet, cost in self._costs(speaker, kind).items()}

    def _costs(self, speaker: Speaker, kind: Family) -> dict[str, int]:
        found: dict[str, int] = {}
        seen: set[str] = set()
        waiting = [(0, speaker.node)]
        while waiting:
            so_far, node = heapq.heappop(waiting)
            if node in seen:
                continue
            seen.add(node)
            for port in self._ospf[node]:
                if family(port.subnet) != kind:
                    continue
                cost = so_far + port.cost
                found[port.subnet] = min(cost, found.get(port.subnet, cost))
                for other, _ in port.others:
                    heapq.heappush(waiting, (cost, other.node))
        return found

    def announced(self, speaker: Speaker) -> set[str]:
        """Returns the subnets that a router learns by OSPF and by BGP, with its own.

        By BGP it learns the subnets of all routers that it reaches by BGP, and their OSPF routes if they
        redistribute these. By OSPF it also learns the BGP routes that its OSPF routers redistribute. Routes
        that were redistributed twice are left out.
        """
        found = set(self.costs(speaker)) if speaker.wanted.ospf else set[str]()
        for kind in FAMILIES if speaker.wanted.ospf else ():
            for other in self._ospf_reach(speaker, kind):
                if other.wanted.bgp and "bgp" in other.wanted.ospf.redistribute:  # type: ignore[union-attr]
                    found |= {subnet for subnet in self._by_bgp(other) if family(subnet) == kind}
        return found | (self._by_bgp(speaker) if speaker.wanted.bgp else set())

    def _by_bgp(self, speaker: Speaker) -> set[str]:
        found = set[str]()
        for other in self._bgp_reach(speaker):
            found |= {card.subnet for card in other.cards}
            if "ospf" in other.wanted.bgp.redistribute and other.wanted.ospf:  # type: ignore[union-attr]
                found |= set(self.costs(other))
        return found

    def _ospf_reach(self, speaker: Speaker, kind: Family) -> list[Speaker]:
        """Returns the other routers that a router reaches by OSPF of a family."""
        reached, waiting = {speaker.node: speaker}, [speaker]
        while waiting:
            for port in self._ospf[waiting.pop().node]:
                for other, _ in port.others if family(port.subnet) == kind else ():
                    if other.node not in reached:
                        reached[other.node] = other
                        waiting.append(other)
        return list(reached.values())[1:]

    def _bgp_reach(self, speaker: Speaker) -> list[Speaker]:
        reached, waiting = [speaker], [speaker]
        while waiting:
            here = waiting.pop()
            near = [other for port in self.bgp_ports(here) for other, _ in port.others]
            for other in [*near, *self.fellows(here)]:
                if not any(other is known for known in reached):
                    reached.append(other)
                    waiting.append(other)
        return reached

    @cached_property
    def _ospf(self) -> dict[str, list[Port]]:
        return {s.node: self.ospf_ports(s) for s in self.speakers if s.wanted.ospf is not None}

    def _ports(self, speaker: Speaker, with_whom: Callable[[Speaker], bool]) -> list[Port]:
        wires = {link.name: link.cost for link in self.scene.links if link.kind == "nodes"}
        return [
            Port(
                card,
                card.subnet,
                wires.get(card.segment, 1),
                card.segment in wires,
                tuple(self._others(speaker, card, with_whom)),
            )
            for card in speaker.cards
        ]

    def _others(
        self, speaker: Speaker, card: Interface, with_whom: Callable[[Speaker], bool]
    ) -> Iterable[tuple[Speaker, Interface]]:
        for other, theirs in self._on[card.subnet]:
            if other is not speaker and with_whom(other):
                yield other, theirs
