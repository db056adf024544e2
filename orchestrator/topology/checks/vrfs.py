"""Checks routing tables of their own (VRF): light routers on one machine, and each interface in one table."""

from __future__ import annotations

import re

from ...software.registry import kind_of
from ..nodes import Node
from .report import Report

_NAME = re.compile(r"(?!eth\d|lo$)[a-z][a-z0-9-]{0,14}")  # of a device; 15 characters are the kernel's limit


def check(report: Report) -> None:
    """Reports `vrf` at nodes that do not forward, are virtual machines, have tagged interfaces, NICs, routes
    of their own or software, and names or places that do not fit.
    """
    for name, node in report.model.nodes.items():
        if node.vrf:
            _node(report, name, node)
            _places(report, name, node)


def _node(report: Report, name: str, node: Node) -> None:
    path = ("nodes", name, "vrf")
    if not node.forward:
        report.add(path, None, f"is of routers, and {name} does not forward", "write `forward: true`")
    beside = {"vlan": bool(node.vlan), "nic": bool(node.nic), "routes": node.routes is not None}
    for key in (key for key, there in beside.items() if there):
        report.add(path, None, f"stands beside `{key}`, which is of the main table", f"leave `{key}` out")
    if node.kind == "vm":
        report.add(path, None, "is of light nodes", "make the tables in the guest, or use `kind: light`")
    if report.model.hosts:
        report.add(path, None, "is of labs on one machine", "leave `hosts` or this out")
    for label, software in node.software.items():
        kind = kind_of(software)
        if kind.name != "command":
            rule = f"{kind.what} uses the main table, and would reach no node of a VRF"
            remedy = "write it at another node, or a command with `ip vrf exec NAME`"
            report.add(("nodes", name, "software", label), None, rule, remedy)


def _places(report: Report, name: str, node: Node) -> None:
    own = {*node.segment, *(link for link, ends in report.names.wires.items() if name in ends)}
    seen: dict[str, str] = {}
    for vrf, places in node.vrf.items():
        path = ("nodes", name, "vrf", vrf)
        if not _NAME.fullmatch(vrf):
            rule = "is no name of a device: a letter, then letters, digits and -, 15 at most, not eth0 or lo"
            report.add(path, vrf, rule, 'write for example "red"')
        if not places:
            report.add(
                path, None, "has no interface", "name a segment of the node, or a link to another node"
            )
        for place in places:
            if place not in own:
                report.unknown(path, place, f"segment or link of {name}", own)
            elif place in seen:
                report.add(path, place, f"is in {seen[place]} already", "name it in one VRF")
            seen.setdefault(place, vrf)
