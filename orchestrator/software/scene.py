"""Defines the data of a lab with which a kind plans its software: names, addresses, phases, other
software.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from contract.plan import Interface, Link
from contract.plan.family import FAMILIES, Family, faces, family, reaching, spoken_to

from ..language.scalars import Moment

LOAD_END = Moment("drain", 0)  # all messages are scheduled before this moment


@dataclass(frozen=True, slots=True)
class Placed:
    """One piece of software on one node, with the model that was read from the file."""

    node: str
    name: str
    kind: str
    model: Any
    endpoint: str = ""  # the software's name in records; "" if it has none
    connect_ns: int = 0
    session: int = 1  # number of the session among those of the software, from 1
    label: str = ""  # the software's name in the file; "" if it is `name`


@dataclass(frozen=True)
class Scene:
    """All data of a lab on which the plan of its software may depend."""

    lab: str
    seed: int
    parameters: Mapping[str, Any]
    group_of: Mapping[str, str]  # node -> its group; a single node is its own group
    index_of: Mapping[str, int]  # node -> its index within its group, from 1
    groups: Mapping[str, tuple[str, ...]]
    placed: Mapping[str, tuple[Placed, ...]]  # node -> its software, in the order of the file
    interfaces: Mapping[str, tuple[Interface, ...]]
    links: tuple[Link, ...]
    subnets: Mapping[str, tuple[str, ...]]  # name of a segment, or of a link between nodes -> its subnets
    # lowest requested rate (bit/s) from one node to another; 0: none
    bottleneck_bps: Callable[[str, str], int]
    ramp_ns: int
    hold_ns: int
    drain_ns: int
    # services of the brokers on a node, by node and protocol: each client of the broker looks for them
    services: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, compare=False)

    @property
    def stop_ns(self) -> int:
        """Returns the end of the load, in nanoseconds from the scenario's start."""
        return self.ramp_ns + self.hold_ns

    @property
    def end_ns(self) -> int:
        return self.stop_ns + self.drain_ns

    def at_ns(self, moment: Moment) -> int:
        """Returns a moment in nanoseconds from the scenario's start."""
        return {"ramp": 0, "hold": self.ramp_ns, "drain": self.stop_ns}[moment.phase] + moment.at_ns

    def count(self, node: str) -> int:
        """Returns the number of members of the node's group; 1 for a node without a group."""
        return len(self.groups.get(self.group_of[node], (node,)))

    def machines(self, name: str) -> tuple[str, ...]:
        """Returns the members of the group of this name, or the node itself."""
        return self.groups.get(name, (name,))

    def at(self, node: str, kind: str) -> tuple[Placed, ...]:
        """Returns the software of one kind on one node."""
        return tuple(placed for placed in self.placed[node] if placed.kind == kind)

    def seed_for(self, *parts: str) -> int:
        """Returns a 63-bit seed for one part of the plan. Equal arguments give the same seed, others
        unrelated seeds.
        """
        text = "\0".join((str(self.seed), *parts))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def ends(self, node: str, to: str) -> tuple[Interface, Interface]:
        """Returns the first pair of interfaces of two nodes in one subnet, with their addresses in it; the
        checks ensure that there is one.
        """
        return next(
            (ours, theirs)
            for ours in faces(self.interfaces[node])
            for theirs in faces(self.interfaces[to])
            if ours.subnet == theirs.subnet
        )

    def address(self, of: str, seen_from: str, kind: Family | None = None) -> str:
        """Returns an address of node `of`: one in a subnet of both nodes, else its first address of a common
        family, else its first address. kind: the family of the address, if both nodes have this family.
        """
        ours, theirs = self.interfaces[seen_from], self.interfaces[of]
        if kind is not None and (found := reaching(theirs, ours, kind)) is not None:
            return found
        return spoken_to(self.interfaces[of], self.interfaces[seen_from])

    def both_addresses(self, of: str, seen_from: str) -> list[str]:
        """Returns the addresses of node `of` that `seen_from` reaches, one of each family that both nodes
        have. Returns none unless an interface of `of` has both families.
        """
        if not any(card.second for card in self.interfaces[of]):
            return []
        ours, theirs = self.interfaces[seen_from], self.interfaces[of]
        found = (reaching(theirs, ours, kind) for kind in FAMILIES)
        return [address for address in found if address is not None]

    @cached_property
    def _addresses(self) -> dict[str, str]:
        return {name: cards[0].address for name, cards in self.interfaces.items()}

    def _of_family(self, kind: Family) -> dict[str, str]:
        """Returns the first address of that family of each node that has one, by node."""
        found: dict[str, str] = {}
        for name, cards in self.interfaces.items():
            for card in faces(cards):
                if card.address and family(card.address) == kind:
                    found.setdefault(name, card.address)
        return found

    @cached_property
    def _addresses4(self) -> dict[str, str]:
        return self._of_family("IPv4")

    @cached_property
    def _addresses6(self) -> dict[str, str]:
        return self._of_family("IPv6")

    def values(self, node: str) -> dict[str, Any]:
        """Returns the variables of a node's templates: the lab, the node with its group, index, count and
        address, the addresses of all nodes, those of each family, and the parameters.
        """
        return {
            "lab": self.lab,
            "node": node,
            "group": self.group_of[node],
            "index": self.index_of[node],
            "count": self.count(node),
            "address": self._addresses[node],
            "addresses": self._addresses,
            "addresses4": self._addresses4,
            "addresses6": self._addresses6,
            "parameters": self.parameters,
        }
