"""Computes which nodes can reach each other over segments, links and forwarding nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from contract.plan.family import FAMILIES, Family, family

from .expansion import Domain, Expansion

Part = tuple[str, Family]  # a broadcast domain or a link between nodes, and one of its families


class Connectivity:
    """Groups subnets that forwarding nodes join, for IPv4 and IPv6 separately. A router joins only those in
    one of its tables (VRF).

    wires: the subnets of links between nodes. Routes in the file are ignored here and may lead nowhere;
    `plan.paths` follows them. A domain without a subnet, which is a mistake, counts as having both families.
    """

    def __init__(
        self, names: Expansion, domains: Mapping[str, Domain], wires: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._families: dict[str, tuple[Family, ...]] = {
            domain.segments[0]: tuple(map(family, domain.subnets)) for domain in domains.values()
        }
        self._on: dict[str, list[str]] = {
            node: [domains[s].segments[0] for s in machine.segment if s in domains]
            for node, machine in names.nodes.items()
        }
        for link, ends in names.wires.items():
            self._families[f"link {link}"] = tuple(map(family, wires[link]))
            for node in ends:
                self._on[node].append(f"link {link}")
        self._root: dict[Part, Part] = {}
        for node, machine in names.nodes.items():
            vrfs: Mapping[str, Sequence[str]] = getattr(machine, "vrf", {})  # groups have none
            tables = [
                {domains[one].segments[0] if one in domains else f"link {one}" for one in places}
                for places in vrfs.values()
            ]
            tables.append(set(self._on[node]).difference(*tables))  # the main table
            for table, kind in product(tables, FAMILIES if machine.forward else ()):
                self._join([part for part in self._parts(node) if part[0] in table and part[1] == kind])

    def families(self, node: str) -> set[Family]:
        """Returns the address families of a node's interfaces."""
        return {kind for one in self._on[node] for kind in self._families[one]}

    def reachable(self, a: str, b: str) -> bool:
        """Returns whether packets from node `a` can reach node `b`."""
        ours = {self._find(part) for part in self._parts(a)}
        return a == b or any(self._find(part) in ours for part in self._parts(b))

    def unroutable(self, a: str, b: str) -> Family | None:
        """Returns an address family in which both nodes have addresses but packets from `a` cannot reach `b`,
        if at least one node has both families on one interface; None if there is none.
        """
        dual = any(len(self._families[one]) > 1 for node in (a, b) for one in self._on[node])
        if a == b or not dual:
            return None
        ours = {self._find(part) for part in self._parts(a)}
        for kind in FAMILIES:
            theirs = [part for part in self._parts(b) if part[1] == kind]
            both = kind in self.families(a) and theirs
            if both and not any(self._find(part) in ours for part in theirs):
                return kind
        return None

    def _parts(self, node: str) -> list[Part]:
        return [(one, kind) for one in self._on[node] for kind in self._families[one] or FAMILIES]

    def _join(self, parts: Iterable[Part]) -> None:
        first, *others = parts or [("", "IPv4")]
        for other in others:
            self._root[self._find(other)] = self._find(first)

    def _find(self, part: Part) -> Part:
        while (above := self._root.get(part, part)) != part:
            part = above
        return part
