"""Builds the network configuration that an agent applies to its node and reads back."""

from __future__ import annotations

from contract.plan import REFLECT_DSCP, Node
from orchestrator.lab.operations import Card, NodeNetwork, RouteTo


def network(node: Node) -> NodeNetwork:
    """Returns a node's entry in the agent's operation `configure`: interfaces, routes, forwarding, and, if
    the node has them, neighbours and the DSCP reflection of its TCP servers. The untagged device below a
    tagged interface gets an entry without address.
    """
    cards: list[Card] = []
    for i in node.interfaces:
        if i.device != i.name:  # the parent device of a tagged interface has no address
            cards.append({"name": i.device, "address": None, "prefix": 0, "mtu": i.mtu, "mac": i.mac})
        address = i.address or None
        cards.append({"name": i.name, "address": address, "prefix": i.prefix, "mtu": i.mtu, "mac": i.mac})
        if i.second:
            cards[-1] |= {"second": i.second, "second_prefix": i.second_prefix}
    routes: list[RouteTo] = [{"to": route.to, "via": route.via} for route in node.routes]
    told: NodeNetwork = {"name": node.name, "interfaces": cards, "forward": node.forward, "routes": routes}
    if node.neighbours:
        told["neighbours"] = [
            {"address": n.address, "mac": n.mac, "device": n.device} for n in node.neighbours
        ]
    if any(software.spec.get(REFLECT_DSCP) for software in node.software):
        told["reflect_dscp"] = True
    return told
