"""Plans links between two nodes: a veth pair from one node to the other, with a subnet of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from ipaddress import ip_network

from contract.plan import Interface, Link

from ..topology.document import File
from ..topology.expansion import Expansion
from ..topology.network import Link as FileLink
from .naming import node_mac, node_netns
from .netem import direction

MTU = 1500


def addressed(
    name: str, port: str, segment: str, addresses: Sequence[str], prefixes: Sequence[int], mtu: int
) -> Interface:
    """Returns an interface with one address, or with one of each family; the first one makes its MAC
    address.
    """
    (address, *second), (prefix, *second_prefix) = addresses, prefixes
    card = Interface(name, port, segment, address, prefix, node_mac(address), mtu)
    if not second:
        return card
    return dataclasses.replace(card, second=second[0], second_prefix=second_prefix[0])


class Wires:
    """The links between nodes of a file, indexed by node."""

    def __init__(self, model: File, names: Expansion, subnets: Mapping[str, tuple[str, ...]]) -> None:
        self._model, self._subnets = model, subnets
        self._of: dict[str, list[tuple[str, int]]] = {}
        for name, ends in names.wires.items():
            for side, node in enumerate(ends):
                self._of.setdefault(node, []).append((name, side))

    def interfaces(self, node: str, before: int) -> tuple[Interface, ...]:
        """Returns the node's ends of links, in the order of the links; `before`: the number of its other
        interfaces.

        The link's first end gets the first address of each subnet, and the second end gets the next one.
        """
        found = []
        for index, (link, side) in enumerate(self._of.get(node, ()), before):
            networks = [ip_network(subnet) for subnet in self._subnets[link]]
            addresses = [str(network.network_address + 1 + side) for network in networks]
            mtu, prefixes = self._model.links[link].mtu or MTU, [one.prefixlen for one in networks]
            found.append(addressed(f"eth{index}", "", link, addresses, prefixes, mtu))
        return tuple(found)

    def link(self, lab: str, name: str, wanted: FileLink, cards: Mapping[str, tuple[Interface, ...]]) -> Link:
        """Returns the planned link, whose ends are the interfaces that `interfaces` made."""
        a, b = wanted.between
        at_a, at_b = (next(c.name for c in cards[node] if c.segment == name) for node in (a, b))
        in_a, in_b = node_netns(lab, a), node_netns(lab, b)
        mtu = wanted.mtu or MTU
        forward = direction(wanted.forward or wanted.both, mtu, (in_a, at_a), (in_b, at_b))
        reverse = direction(wanted.reverse or wanted.both, mtu, (in_b, at_b), (in_a, at_a))
        (subnet, *second), cost = self._subnets[name], wanted.cost or 1
        link = Link(name, a, b, "nodes", forward, reverse, subnet=subnet, cost=cost)
        return dataclasses.replace(link, second_subnet=second[0]) if second else link
