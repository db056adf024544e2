"""Checks DHCPv6 servers and clients: one server on a segment of IPv6, and a server for each client."""

from __future__ import annotations

from collections.abc import Iterator

from ...language.source import Path
from ...language.units import text_ns
from ..checking import Checks, Here, joined, light
from ..slaac.checks import segment_of
from ..slaac.file import Slaac
from .file import SHORTEST_LEASE_NS, Dhcp6, Dhcp6Client

SERVER, CLIENT = "dhcp6", "dhcp6-client"


def check_server(report: Checks, here: Here, model: Dhcp6) -> None:
    """Reports the mistakes of a DHCPv6 server."""
    options, path = model.dhcp6, (*here.path, SERVER)
    light(report, here, path, "whose image has no dnsmasq")
    if len(here.nodes) > 1:
        rule = f"would run on {len(here.nodes)} nodes: a segment has one DHCPv6 server"
        report.add(path, None, rule, "write it at a single node")
        return
    if options.lease < SHORTEST_LEASE_NS or options.lease % 10**9:
        rule = "is not a whole number of seconds of at least 2 min, which dnsmasq would make of it"
        report.add((*path, "lease"), text_ns(options.lease), rule, 'write for example "10 min"')
    segment = _segment(report, here, options.segment, path)
    if segment is None:
        return
    near = report.bridged([segment]) or {segment}
    for node, other in _servers(report):
        if node != here.nodes[0] and other in near:
            rule = f"{node} is a DHCPv6 server here, too: a client would take whichever answers first"
            report.add(path, None, rule, "leave one of them out")
            break
    if options.dns is not None and report.node((*path, "dns"), options.dns):
        joined(report, here, (*path, "dns"), options.dns, options.dns)


def check_client(report: Checks, here: Here, model: Dhcp6Client) -> None:
    """Reports the mistakes of a DHCPv6 client."""
    options, path = model.dhcp6_client, (*here.path, CLIENT)
    light(report, here, path, "whose image configures its own interfaces")
    segment = _segment(report, here, options.segment, path)
    if segment is None:
        return
    node = here.nodes[0]
    taken = [_taken(report, node, one) for one in report.programs(node).values()]
    if taken.count(segment) > 1:
        report.add(path, None, "another client of this node takes this address", "leave one of them out")
    near = report.bridged([segment])
    if near is None or report.reachable(here.nodes, node) is None:
        return  # a mistake elsewhere may hide the server
    servers = [server for server, other in _servers(report) if other in near]
    if not servers:
        rule = f"no node of segment {segment} is a DHCPv6 server"
        report.add(path, None, rule, "write `software: {dhcp6: {dhcp6: {}}}` at a node there")
    elif servers[0] in here.nodes:
        rule = f"{servers[0]} is the DHCPv6 server that it would ask"
        report.add(path, None, rule, "leave the client out there: a server's own address is fixed")


def _taken(report: Checks, node: str, model: object) -> str | None:
    """Returns the segment whose IPv6 address a piece of software takes; None for other software."""
    if isinstance(model, Dhcp6Client):
        return segment_of(report, node, model.dhcp6_client.segment)
    return segment_of(report, node, model.slaac.segment) if isinstance(model, Slaac) else None


def _servers(report: Checks) -> Iterator[tuple[str, str | None]]:
    """Yields each DHCPv6 server of the file with its segment."""
    for node in report.everyone:
        for model in report.programs(node).values():
            if isinstance(model, Dhcp6):
                yield node, segment_of(report, node, model.dhcp6.segment)


def _segment(report: Checks, here: Here, wanted: str | None, path: Path) -> str | None:
    """Returns the segment of the software; reports one without the node or without IPv6, and a missing
    choice.
    """
    if wanted is not None and wanted not in here.segments:
        listed = ", ".join(here.segments) or "a segment at the node"
        report.add((*path, "segment"), wanted, f"{here.path[1]} does not stand there", f"name {listed}")
        return None
    segment = segment_of(report, here.nodes[0], wanted)
    if segment is None:
        # no other mistake in the file hides a subnet
        if not any(report.subnet(one) is None for one in here.segments):
            rule = "stands on no segment with IPv6, or on several, and does not say which"
            report.add(path, None, rule, "write `segment: NAME`, of one with a subnet of IPv6")
        return None
    if report.subnet(segment, "IPv6") is None:
        if report.subnet(segment) is not None:
            report.add((*path, "segment"), segment, "has no IPv6", "give it a subnet of IPv6, too")
        return None
    return segment
