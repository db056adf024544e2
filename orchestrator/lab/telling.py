"""What an agent is told of its node's part in the network, and must read back."""

from __future__ import annotations

from orchestrator.lab.operations import Card, NodeNetwork, RouteTo
from orchestrator.model import Node


def network(node: Node) -> NodeNetwork:
    """One item of the agent's `configure`."""
    cards: list[Card] = [
        {"name": i.name, "address": i.address or None, "prefix": i.prefix, "mtu": i.mtu, "mac": i.mac}
        for i in node.interfaces
    ]
    routes: list[RouteTo] = [{"to": route.to, "via": route.via} for route in node.routes]
    return {"name": node.name, "interfaces": cards, "forward": node.forward, "routes": routes}
