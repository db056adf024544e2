"""Computes which nodes can reach each other over segments, links and forwarding nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contract.plan.family import FAMILIES, Family, family

from .expansion import Domain, Expansion


class Connectivity:
    """Groups subnets that forwarding nodes join, for IPv4 and IPv6 separately.

    wires: the subnets of links between nodes. Routes written by hand are ignored here and may lead nowhere;
    `plan.paths` follows them.
    """

    def __init__(self, names: Expansion, domains: Mapping[str, Domain], wires: Mapping[str, str]) -> None:
        self._subnets: dict[str, list[str]] = {
            node: [domains[s].segments[0] for s in machine.segment if s in domains]
            for node, machine in names.nodes.items()
        }
        self._family = {
            domain.segments[0]: family(domain.subnets[0]) for domain in domains.values() if domain.subnets
        }
        for link, ends in names.wires.items():
            self._family[f"link {link}"] = family(wires[link])
            for node in ends:
                self._subnets[node].append(f"link {link}")
        self._root: dict[str, str] = {}
        for node, machine in names.nodes.items():
            for kind in FAMILIES if machine.forward else ():
                self._join([s for s in self._subnets[node] if self._family.get(s, kind) == kind])

    def families(self, node: str) -> set[Family]:
        """Returns the address families of a node's interfaces."""
        return {self._family[s] for s in self._subnets[node] if s in self._family}

    def reachable(self, a: str, b: str) -> bool:
        """Returns whether packets from node `a` can reach node `b`."""
        ours = {self._find(subnet) for subnet in self._subnets[a]}
        return a == b or any(self._find(subnet) in ours for subnet in self._subnets[b])

    def _join(self, subnets: Iterable[str]) -> None:
        first, *others = subnets or [""]
        for other in others:
            self._root[self._find(other)] = self._find(first)

    def _find(self, subnet: str) -> str:
        while (above := self._root.get(subnet, subnet)) != subnet:
            subnet = above
        return subnet
