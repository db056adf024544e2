"""Finds the network that each port of Mininet's switches is on after the script's commands. The switches are
bridges of one machine, the root namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .network import Bridge, Lan, Machine, Network, Origin, name_of

_STATE = {"linux": "up", "ovs": "always"}


def root_of(net: dict[str, Any], ports: Sequence[tuple[str, str]]) -> Machine:
    """Returns the machine that the switches of a recorded network are on, with a bridge for each that `brctl`
    or `ovs-vsctl` can change. ports: (node, interface) of each end of a link.
    """
    root = Machine("root")
    for switch in net["switches"]:
        state = _STATE.get(switch["plumbing"])
        if state is not None:
            own = [port for node, port in ports if node == switch["name"]]
            root.bridges[switch["name"]] = Bridge(own, bool(switch["stp"]), state)  # type: ignore[arg-type]
    return root


class Places:
    """The networks of the switches' ports, as the commands of the script leave them."""

    def __init__(self, network: Network, net: dict[str, Any], names: dict[str, str], root: Machine) -> None:
        self.root, self._network, self._names = root, network, names
        self._changeable = {one["name"] for one in net["switches"] if one["plumbing"] in _STATE}
        self._lans: dict[str, str] = {}  # bridge that the script makes -> segment
        for name, bridge in root.bridges.items():
            if name in names:
                network.lans[names[name]].stp = bridge.stp
        for name in sorted(self._changeable & root.bridges.keys()):
            if root.bridges[name].state == "down":
                network.changed.append(f"{name} is off at the end: the links of its ports are down here")
        for name in sorted(self._changeable - root.bridges.keys()):
            network.changed.append(f"{name} is deleted in the script: the links of its ports are down here")

    def linux(self) -> set[str]:
        """Returns the names of the bridges of Linux, whose own state is that of their ports."""
        return {name for name, bridge in self.root.bridges.items() if bridge.state != "always"}

    def of(self, node: str, port: str) -> tuple[str, bool]:
        """Returns the segment of a switch's port, and whether its link is down: its bridge is off, or it is
        on none, which is reported.
        """
        ours = self._names[node]
        if node not in self._changeable:
            return ours, False
        found = next((name for name, one in self.root.bridges.items() if port in one.ports), None)
        if found is None:
            if node in self.root.bridges:
                self._network.changed.append(
                    f"{port} is on no bridge at the script's end: its link is down here"
                )
            return ours, True
        bridge = self.root.bridges[found]
        if found not in self._names:
            self._lans.setdefault(found, self._segment(found, bridge))
            return self._lans[found], bridge.state == "down"
        if found != node:
            self._network.changed.append(f"{port} of {node} is on {found} at the script's end")
        return self._names[found], bridge.state == "down"

    def _segment(self, bridge: str, made: Bridge) -> str:
        if bridge in self._lans:
            return self._lans[bridge]
        network = self._network
        name = name_of(bridge, {*network.machines, *network.lans})
        network.changed.append(f"{bridge}, which the script makes, is a segment here")
        network.lans[name] = Lan(name, stp=made.stp, origin=Origin(network.source))
        if made.state == "new":
            network.changed.append(f"{bridge} is never set up in the script: it forwards here")
        return name
