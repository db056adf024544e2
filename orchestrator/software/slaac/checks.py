"""Checks routers that advertise and hosts that configure themselves: the segment must have an IPv6 subnet of
/64, a router must forward, and a host must not forward.
"""

from __future__ import annotations

from ipaddress import IPv6Network

from ...language.source import Path
from ...language.units import text_ns
from ..checking import Checks, Here, light
from .file import LONGEST_NS, SHORTEST_NS, Advertise, Slaac

ROUTER, HOST = "advertise", "slaac"
LENGTH = 64  # bits of a prefix from which Ethernet hosts make their own addresses (RFC 2464, 4)


def check_router(report: Checks, here: Here, model: Advertise) -> None:
    """Reports the mistakes of a router that advertises."""
    options, path = model.advertise, (*here.path, ROUTER)
    light(report, here, path, "whose image has no dnsmasq")
    _segment(report, here, options.segment, path)
    for node in here.nodes[:1]:
        if not report.forwards(node):
            report.add(path, None, f"{node} does not forward", f"write `forward: true` at {here.path[1]}")
    for key, value in (("lifetime", options.lifetime), ("every", options.every)):
        if value % 10**9:
            report.add((*path, key), text_ns(value), "is not a whole number of seconds", 'write "10 min"')
    if not SHORTEST_NS <= options.lifetime <= LONGEST_NS:
        rule = f"is not from {text_ns(SHORTEST_NS)} to {text_ns(LONGEST_NS)} (RFC 4861, 6.2.1)"
        report.add((*path, "lifetime"), text_ns(options.lifetime), rule, 'write for example "30 min"')
    elif not 4 * 10**9 <= options.every <= min(options.lifetime, 1800 * 10**9):
        rule = "is not from 4 s to 1800 s (RFC 4861, 6.2.1), or above `lifetime`: hosts would lose the router"
        report.add((*path, "every"), text_ns(options.every), rule, 'write for example "10 min"')


def check_host(report: Checks, here: Here, model: Slaac) -> None:
    """Reports the mistakes of a host that configures itself."""
    options, path = model.slaac, (*here.path, HOST)
    light(report, here, path, "whose image configures its own interfaces")
    segment = _segment(report, here, options.segment, path)
    node = here.nodes[0]
    if report.forwards(node):
        rule = f"{node} forwards, and a router takes no advertisements (RFC 4862, 4)"
        report.add(path, None, rule, "leave `forward` or this out")
    if sum(isinstance(one, Slaac) for one in report.programs(node).values()) > 1:
        report.add(path, None, "a node configures itself once", "leave one of them out")
    near = report.bridged([segment]) if segment is not None else None
    if near is None or report.reachable(here.nodes, node) is None:
        return  # another reported mistake may be the reason why no router is found
    if not any(_serves(report, one, near) for one in report.everyone):
        rule = f"no node of segment {segment} advertises a prefix"
        report.add(path, None, rule, "write `software: {ra: {advertise: {}}}` at a router there")


def segment_of(report: Checks, node: str, wanted: str | None) -> str | None:
    """Returns the segment of the key, or else the node's only segment with IPv6; None if there is no such
    segment, or several.
    """
    six = [one for one in report.segments(node) if report.subnet(one, "IPv6") is not None]
    return wanted or (six[0] if len(six) == 1 else None)


def _serves(report: Checks, node: str, near: set[str]) -> bool:
    return any(
        segment_of(report, node, one.advertise.segment) in near
        for one in report.programs(node).values()
        if isinstance(one, Advertise)
    )


def _segment(report: Checks, here: Here, wanted: str | None, path: Path) -> str | None:
    """Returns the segment of the software; reports a segment without the node, a segment without an IPv6
    subnet of /64, and a missing choice.
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
    subnet = report.subnet(segment, "IPv6")
    if subnet is None:
        if report.subnet(segment) is not None:
            report.add((*path, "segment"), segment, "has no IPv6", "give it a subnet of IPv6, too")
        return None
    if IPv6Network(subnet).prefixlen != LENGTH:
        rule = f"has {subnet}, and hosts of Ethernet make addresses of a /{LENGTH} (RFC 2464, 4)"
        report.add(path, segment, rule, "write a /64 at the segment")
    return segment
