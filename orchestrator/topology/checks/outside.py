"""Checks endpoints outside the lab: at single light nodes, with addresses that no node of the lab has."""

from __future__ import annotations

import ipaddress

from ...language.endpoints import split
from .report import Report


def check(report: Report) -> None:
    """Reports `outside` at virtual machines and at nodes with a container image's files, endpoints in a
    subnet of the lab, and ports on which a program of the node listens at a loopback address.
    """
    for name, node in report.model.nodes.items():
        path = ("nodes", name, "outside")
        if node.outside and node.kind == "vm":
            rule = "is only for kind light: the network of a virtual machine has no other end on this machine"
            report.add(path, None, rule, "write it at a light node, or give the machine a NIC")
            continue
        for text in node.outside:
            address = ipaddress.ip_address(split(text)[0])
            if (owner := _owner(report, address)) is not None:
                rule = f"is of {owner}, a subnet of this lab"
                report.add(path, text, rule, "name nodes of the lab by their name; this is for others")


def _owner(report: Report, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    """Returns the segment or link of the file whose subnet has the address; None if none has."""
    model = report.model
    subnets = {
        **{f"segment {name}": segment.subnet for name, segment in model.segments.items()},
        **{f"link {name}": link.subnet for name, link in model.links.items()},
    }
    for owner, several in subnets.items():
        for subnet in several or ():
            if address in ipaddress.ip_network(subnet):
                return owner
    return None
