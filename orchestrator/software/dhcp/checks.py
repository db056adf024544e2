"""Checks DHCP servers and clients: one server on a segment, ranges that fit, a server for each client."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from ..checking import Checks, Here, joined, light
from .file import SHORTEST_LEASE_NS, Dhcp, DhcpClient, DhcpOptions, Range

SERVER, CLIENT = "dhcp", "dhcp-client"


def check_server(report: Checks, here: Here, model: Dhcp) -> None:
    """Reports the mistakes of a DHCP server."""
    options, path = model.dhcp, (*here.path, SERVER)
    light(report, here, path, "whose image has no dnsmasq")
    if len(here.nodes) > 1:
        rule = f"would run on {len(here.nodes)} nodes: a segment has one DHCP server"
        report.add(path, None, rule, "write it at a single node")
        return
    segment = _segment(report, here, options.segment, SERVER)
    if segment is None:
        return
    _alone(report, here, segment)
    subnet = report.subnet(segment, "IPv4")
    if options.range is not None and subnet is not None:
        _range(report, here, options.range, IPv4Network(subnet))
    if options.lease < SHORTEST_LEASE_NS or options.lease % 10**9:
        rule = "is not a whole number of seconds of at least 2 min, which dnsmasq would make of it"
        report.add((*path, "lease"), f"{options.lease / 1e9:g} s", rule, 'write for example "10 min"')
    for key, node in (("router", options.router), ("dns", options.dns)):
        if node is not None and report.node((*path, key), node):
            _given(report, here, segment, key, node)


def _given(report: Checks, here: Here, segment: str, key: str, node: str) -> None:
    """Reports a router that does not forward or is on another segment, and a name server that clients cannot
    reach.
    """
    path = (*here.path, SERVER, key)
    if key == "dns":
        joined(report, here, path, node, node)
        return
    near = report.bridged([segment])
    if near is not None and not near & set(report.segments(node)):
        report.add(path, node, f"{node} does not stand on segment {segment}", "name a router there")
    elif not report.forwards(node):
        report.add(path, node, f"{node} does not forward", "write `forward: true` at it")


def _alone(report: Checks, here: Here, segment: str) -> None:
    """Reports a second server on the same segment, which the same clients would reach."""
    near = report.bridged([segment]) or {segment}
    for node, other in _servers(report):
        theirs = segment_of(report, node, other.segment)
        if node != here.nodes[0] and theirs in near:
            rule = f"{node} is a DHCP server here, too: a client would take whichever answers first"
            report.add((*here.path, SERVER), None, rule, "leave one of them out")
            return


def _range(report: Checks, here: Here, wanted: Range, subnet: IPv4Network) -> None:
    path = (*here.path, SERVER, "range")
    first, last = IPv4Address(wanted.first), IPv4Address(wanted.last)
    for key, address in (("from", first), ("to", last)):
        if not subnet[1] <= address <= subnet[-2]:
            rule = f"does not fit: the hosts of {subnet} are {subnet[1]} to {subnet[-2]}"
            report.add((*path, key), str(address), rule, "write an address of these")
            return
    if last < first:
        report.add(path, None, f"does not fit: {last} is below {first}", "write the lower one as `from`")


def check_client(report: Checks, here: Here, model: DhcpClient) -> None:
    """Reports the mistakes of a DHCP client."""
    options, path = model.dhcp_client, (*here.path, CLIENT)
    light(report, here, path, "whose image configures its own interfaces")
    segment = _segment(report, here, options.segment, CLIENT)
    if segment is None:
        return
    clients = (one.dhcp_client.segment for one in _clients(report, here.nodes[0]))
    if [segment_of(report, here.nodes[0], one) for one in clients].count(segment) > 1:
        report.add(path, None, "another client of this node takes this address", "leave one of them out")
    near = report.bridged([segment])
    if near is None or report.reachable(here.nodes, here.nodes[0]) is None:
        return  # a mistake elsewhere may hide the server
    servers = [node for node, one in _servers(report) if segment_of(report, node, one.segment) in near]
    if not servers:
        rule = f"no node of segment {segment} is a DHCP server"
        report.add(path, None, rule, "write `software: {dhcp: {dhcp: {}}}` at a node there")
    elif servers[0] in here.nodes:
        rule = f"{servers[0]} is the DHCP server that it would ask"
        report.add(path, None, rule, "leave the client out there: a server's own address is fixed")


def _segment(report: Checks, here: Here, wanted: str | None, kind: str) -> str | None:
    """Returns the segment of the key, or the node's only one; reports a segment without the node, and a
    missing choice.
    """
    path = (*here.path, kind)
    if wanted is None and len(here.segments) != 1:
        rule = f"does not say on which of {len(here.segments)} segments"
        report.add(path, None, rule, "write `segment: NAME`")
        return None
    segment = wanted or here.segments[0]
    if segment not in here.segments:
        listed = ", ".join(here.segments) or "a segment at the node"
        report.add((*path, "segment"), segment, f"{here.path[1]} does not stand there", f"name {listed}")
        return None
    if report.subnet(segment) is not None and report.subnet(segment, "IPv4") is None:
        report.add(path, None, f"segment {segment} has IPv6, and DHCP here gives IPv4", "leave it out there")
        return None
    return segment


def segment_of(report: Checks, node: str, wanted: str | None) -> str | None:
    """Returns the segment of a node that a server serves; None if the file has a mistake there."""
    segments = report.segments(node)
    return wanted or (segments[0] if len(segments) == 1 else None)


def _servers(report: Checks) -> Iterator[tuple[str, DhcpOptions]]:
    for node in report.everyone:
        for model in report.programs(node).values():
            if isinstance(model, Dhcp):
                yield node, model.dhcp


def _clients(report: Checks, node: str) -> list[DhcpClient]:
    return [one for one in report.programs(node).values() if isinstance(one, DhcpClient)]
