"""Finds the host of a node, a namespace, a device of the core namespace, a link's direction, or a line of a
step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from contract.plan import Direction, Node, Plan, Step
from orchestrator.lab.links import ports

DEVICE = re.compile(r"\b(?:dev|add) (\S+)|link del(?: dev)? (\S+)")


class Places:
    """Maps nodes, namespaces, devices and directions of links to hosts. Nodes can be added and removed."""

    def __init__(self, plan: Plan) -> None:
        self.hosts = [host.name for host in plan.hosts]
        # These are excluded, because both ends of a tunnel have the same device name.
        tunnels = {tunnel.device for tunnel in plan.tunnels}
        self.core = plan.core_netns
        self._of_node: dict[str, str] = {}
        self._of_netns: dict[str, str] = {}
        self._of_device: dict[str, str] = {}  # host of each device in the core namespace
        self._ports: dict[tuple[str, str], str] = {}
        self._directions: dict[tuple[str, str], Direction] = {}
        for link in plan.links:
            for way, direction in (("forward", link.forward), ("reverse", link.reverse)):
                self._directions[link.name, way] = direction
                if direction.netns == self.core and direction.host and direction.device not in tunnels:
                    self._of_device |= dict.fromkeys((direction.device, direction.carrier), direction.host)
        self.add(plan.nodes)

    def add(self, nodes: Iterable[Node]) -> None:
        """Adds nodes with their namespaces, ports and interfaces."""
        for node in nodes:
            self._of_node[node.name] = node.host
            self._of_netns[node.netns] = node.host
            self._of_device |= dict.fromkeys(ports(node), node.host)
            self._ports |= {(node.netns, card.name): card.port for card in node.interfaces if card.port}

    def node(self, name: str) -> str:
        """Returns the node's host; for an unknown name the first host, whose driver then reports
        the error.
        """
        return self._of_node.get(name) or self.hosts[0]

    def drop(self, nodes: Iterable[Node]) -> None:
        """Removes the nodes' names; their namespaces and ports stay in the tables."""
        for node in nodes:
            self._of_node.pop(node.name, None)

    def on(self, host: str) -> list[str]:
        """Returns the names of the nodes that are on a host now."""
        return [name for name, at in self._of_node.items() if at == host]

    def netns(self, netns: str) -> list[str]:
        """Returns the hosts of a namespace: all hosts for the core namespace, else one host; for an unknown
        namespace, the first host.
        """
        return self.hosts if netns == self.core else [self._of_netns.get(netns) or self.hosts[0]]

    def port(self, name: str) -> str:
        """Returns the host of a device in the core namespace; the first host if the device is unknown."""
        return self._of_device.get(name) or self.hosts[0]

    def direction(self, link: str, way: str) -> Direction | None:
        """Returns a direction of a link (the forward one for `both`); None if the link is not in the plan."""
        return self._directions.get((link, way if way == "reverse" else "forward"))

    def link(self, link: str, way: str, netns: str, device: str) -> str:
        """Returns the host of a direction of a link. For a link that is not in the plan, returns the host of
        the device, or the first host if the device is unknown, too.
        """
        found = self.direction(link, way)
        if found is not None and found.host:
            return found.host
        return self.device(netns, device) or self.hosts[0]

    def device(self, netns: str, device: str) -> str | None:
        """Returns the host of a device by its namespace, or else by its name. Returns None if both are
        unknown, or if the device is on several hosts, as a tunnel's device is.
        """
        return self._of_netns.get(netns) or self._of_device.get(device)

    def port_of(self, netns: str, device: str) -> str | None:
        """Returns the port in the core namespace that belongs to a node's interface; None if
        there is none.
        """
        return self._ports.get((netns, device))

    def steps(self, step: Step) -> dict[str, str]:
        """Splits a step's text by host. A step with a host, or for a node's namespace, stays whole. A line
        for the core namespace goes to the host of its device, or to all hosts if it names no device of one
        host.
        """
        if step.host or step.netns != self.core:
            return {step.host or self.netns(step.netns)[0]: step.text}
        found: dict[str, list[str]] = {}
        for line in step.text.splitlines(keepends=True):
            named = DEVICE.search(line)
            device = (named[1] or named[2]) if named else ""
            at = self._of_device.get(device)
            for host in [at] if at else self.hosts:
                found.setdefault(host, []).append(line)
        return {host: "".join(lines) for host, lines in found.items()}
