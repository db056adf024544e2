"""Lists the NICs of the machine that a plan uses, each with its node or link and its place in the lab.

The module uses only the standard library, since the lab process loads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contract.plan import Interface, Link, Node, Plan


@dataclass(frozen=True, slots=True)
class NicUse:
    """One requested NIC. kind: its interface is moved into a namespace, or its PCI function is passed to a
    VM.
    """

    asked: str  # PCI address, vendor:device, interface name, or a physical function's name:vfN
    # place in the topology, such as nodes.broker.eth0 or links.cable.b, for error texts; unique in the plan
    place: str
    kind: Literal["namespace", "vm"]
    netns: str = ""  # the namespace that gets the interface, if the kind is `namespace`
    name: str = ""  # the interface's name in this namespace, if the kind is `namespace`
    node: str = ""  # the node with the interface `interface`; "" for a port of a bridge
    interface: str = ""


def nic_uses(plan: Plan) -> list[NicUse]:
    """Returns every use of a NIC in the plan: NICs and cables of nodes, then those of links."""
    found = [use for node in plan.nodes for card in node.interfaces for use in _of_card(plan, node, card)]
    return found + [use for link in plan.links for use in _of_link(link)]


def uses_nics(plan: Plan) -> bool:
    return bool(nic_uses(plan))


def _of_card(plan: Plan, node: Node, card: Interface) -> Iterator[NicUse]:
    place = f"nodes.{node.name}.{card.name}"
    if card.nic is not None and node.kind == "vm":
        yield NicUse(card.nic, place, "vm", node=node.name, interface=card.name)
    elif card.nic is not None:
        yield NicUse(card.nic, place, "namespace", node.netns, card.name, node.name, card.name)
    if card.cable is not None:
        yield NicUse(card.cable, f"{place}.cable", "namespace", plan.core_netns, card.port)


def _of_link(link: Link) -> Iterator[NicUse]:
    if link.nics is not None:
        for asked, way, end in ((link.nics[0], link.forward, "a"), (link.nics[1], link.reverse, "b")):
            yield NicUse(asked, f"links.{link.name}.{end}", "namespace", way.netns, way.device)
