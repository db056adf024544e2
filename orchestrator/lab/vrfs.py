"""Sets the routes of routers' own tables (VRF), and reads them and the places of interfaces back."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from contract.plan import Node, Step, Vrf
from orchestrator.lab import readback, tools
from orchestrator.lab.lab import Lab
from orchestrator.plan.vrfs import route_lines

FLAGS = {"IPv4": "-4", "IPv6": "-6"}


def set_routes(lab: Lab, nodes: Iterable[Node]) -> None:
    """Sets the routes of the nodes' VRFs; raises LabError if the kernel reports others, or an interface in
    another VRF.
    """
    for node in nodes:
        if lines := route_lines(node):
            text = "".join(f"{line}\n" for line in lines)
            lab.driver.apply(Step("ip", node.netns, text, f"routes of VRFs of {node.name}", node.host))
        if node.vrfs and lab.driver.name != "fake":
            readback.insist([one for vrf in node.vrfs for one in differences(node, vrf)])


def differences(node: Node, vrf: Vrf) -> list[readback.Difference]:
    """Compares interfaces and routes of a VRF with those that `ip` shows."""
    place = f"nodes.{node.name}.vrf.{vrf.name}"
    devices = tools.read_json("ip", node.netns, "link", "show", "master", vrf.name)
    inside = sorted(str(one["ifname"]) for one in devices)
    found = []
    if inside != sorted(vrf.interfaces):
        found.append(readback.Difference(f"{place}.interfaces", sorted(vrf.interfaces), inside))
    shown = [
        entry
        for flag in FLAGS.values()
        for entry in tools.read_json("ip", node.netns, flag, "route", "show", "table", str(vrf.table))
    ]
    wanted, read = _wanted(vrf), _read(shown)
    return found + ([] if wanted == read else [readback.Difference(f"{place}.routes", wanted, read)])


def _wanted(vrf: Vrf) -> dict[str, list[str]]:
    return dict(sorted((to, sorted(route.via)) for route in vrf.routes for to in route.to))


def _read(entries: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Returns subnet -> sorted next hops of the routes that vNET set."""
    found = {}
    for entry in entries:
        if entry.get("protocol") != "static" or entry.get("type") == "unreachable":
            continue
        via = [hop["gateway"] for hop in entry.get("nexthops", [entry])]
        to = entry["dst"]
        if to == "default":
            to = "::/0" if ":" in via[0] else "0.0.0.0/0"
        found[str(ipaddress.ip_network(to))] = sorted(via)
    return dict(sorted(found.items()))
