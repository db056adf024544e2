"""Which host has what: nodes and their namespaces, devices of the core namespaces, links, text for tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.lab.links import ports
from orchestrator.model import Direction, Node, Plan, Step

DEVICE = re.compile(r"\b(?:dev|add) (\S+)|link del(?: dev)? (\S+)")


class Places:
    """Follows nodes that come and go."""

    def __init__(self, plan: Plan) -> None:
        self.hosts = [host.name for host in plan.hosts]
        tunnels = {tunnel.device for tunnel in plan.tunnels}  # which each end has by the same name
        self.core = plan.core_netns
        self._of_node: dict[str, str] = {}
        self._of_netns: dict[str, str] = {}
        self._of_device: dict[str, str] = {}  # of core namespaces
        self._ports: dict[tuple[str, str], str] = {}
        self._directions: dict[tuple[str, str], Direction] = {}
        for link in plan.links:
            for way, direction in (("forward", link.forward), ("reverse", link.reverse)):
                self._directions[link.name, way] = direction
                if direction.netns == self.core and direction.host and direction.device not in tunnels:
                    self._of_device |= dict.fromkeys((direction.device, direction.carrier), direction.host)
        self.add(plan.nodes)

    def add(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._of_node[node.name] = node.host
            self._of_netns[node.netns] = node.host
            self._of_device |= dict.fromkeys(ports(node), node.host)
            self._ports |= {(node.netns, card.name): card.port for card in node.interfaces if card.port}

    def node(self, name: str) -> str:
        """Its host; the first for a name that nobody has: who is asked there says so."""
        return self._of_node.get(name) or self.hosts[0]

    def drop(self, nodes: Iterable[Node]) -> None:
        """They are gone."""
        for node in nodes:
            self._of_node.pop(node.name, None)

    def on(self, host: str) -> list[str]:
        """The nodes that are there now."""
        return [name for name, at in self._of_node.items() if at == host]

    def netns(self, netns: str) -> list[str]:
        """A node's is on one host, the core's on each."""
        return self.hosts if netns == self.core else [self._of_netns.get(netns) or self.hosts[0]]

    def port(self, name: str) -> str:
        return self._of_device.get(name) or self.hosts[0]

    def direction(self, link: str, way: str) -> Direction | None:
        """For `both` that of forward; None of no link of the plan's."""
        return self._directions.get((link, way if way == "reverse" else "forward"))

    def link(self, link: str, way: str, netns: str, device: str) -> str:
        """Host of the device that carries a direction; of a link that came with a node, that of the node."""
        found = self.direction(link, way)
        if found is not None and found.host:
            return found.host
        return self.device(netns, device) or self.hosts[0]

    def device(self, netns: str, device: str) -> str | None:
        """The host of a device of a node, at either end; None of one that several have, as a tunnel's."""
        return self._of_netns.get(netns) or self._of_device.get(device)

    def port_of(self, netns: str, device: str) -> str | None:
        """The core's end of a node's interface."""
        return self._ports.get((netns, device))

    def steps(self, step: Step) -> dict[str, str]:
        """The text of a step by host; lines of a core namespace go where their device is, else everywhere."""
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
