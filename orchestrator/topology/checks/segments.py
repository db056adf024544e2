"""Checks segments: disjoint subnets, equal MTUs of joined segments, enough addresses and bridge ports."""

from __future__ import annotations

import ipaddress
from collections import Counter

from contract.plan.family import IPV6_LEAST_MTU, Subnet, family, overlap
from contract.plan.hosts import BRIDGE_PORTS

from ...language.source import Path
from ..expansion import Domain, hosts
from .report import Report

WITHOUT_IPV6 = "builtin-tiny"  # images/guest/tiny.config


def check(report: Report) -> None:
    """Checks subnets, MTUs, spanning trees, IPv6, fixed addresses and free addresses; without hosts, also
    bridge ports. Checks nothing if segments or ends of links have problems already.
    """
    if report.lost("segments") or report.unsure("links", "between"):
        return
    found = {domain.segments: domain for domain in report.domains.values()}
    for domain in found.values():
        _one_subnet(report, domain)
        _one_mtu(report, domain)
        _one_tree(report, domain)
    _node_mtus(report)
    _apart(report, list(found.values()))
    _fixed(report)
    _room(report, list(found.values()))
    _wide_enough(report)
    if not (
        report.model.hosts or report.lost("hosts")
    ):  # in a multi-host lab each host has a bridge of its own, and the planner counts its ports
        _ports(report)


def _one_subnet(report: Report, domain: Domain) -> None:
    first = domain.segments[0]
    if not domain.subnets:
        report.add(("segments", first), None, "has no subnet", "write `subnet: 10.10.0.0/16`")
    for name in domain.segments[1:]:
        subnet = tuple(report.model.segments[name].subnet)
        if subnet and subnet != domain.subnets:
            has = " and ".join(domain.subnets)
            rule = f"a link joins it to a segment with {has}; joined segments are one subnet"
            remedy = "write the same subnet, or leave it out here"
            report.add(("segments", name, "subnet"), " and ".join(subnet), rule, remedy)


def _node_mtus(report: Report) -> None:
    for section, machines in (("nodes", report.model.nodes), ("groups", report.model.groups)):
        for name, machine in machines.items():
            most = min((m for s in machine.segment if (m := report.mtu(s)) is not None), default=None)
            if machine.mtu is not None and most is not None and machine.mtu > most:
                rule = f"is more than its segment's, {most}: the bridge would drop its longer frames"
                report.add(
                    (section, name, "mtu"), machine.mtu, rule, "write a smaller one, or raise the segment's"
                )
            if machine.mtu is not None and not machine.segment:
                rule = "is of interfaces on segments, and it has none"
                report.add((section, name, "mtu"), machine.mtu, rule, "write `mtu:` at its links")


def _one_mtu(report: Report, domain: Domain) -> None:
    expected = report.model.segments[domain.segments[0]].mtu
    for name in domain.segments[1:]:
        mtu = report.model.segments[name].mtu
        if mtu != expected:
            rule = f"a link joins it to {domain.segments[0]} with MTU {expected}; bridges do not fragment"
            report.add(("segments", name, "mtu"), mtu, rule, "give joined segments the same MTU")


def _one_tree(report: Report, domain: Domain) -> None:
    first = domain.segments[0]
    for name in domain.segments[1:]:
        if report.model.segments[name].stp != report.model.segments[first].stp:
            rule = f"a link joins it to {first}; segments that links join have a spanning tree together"
            report.add(
                ("segments", name), None, rule, f"write `stp: true` at both {first} and {name}, or neither"
            )


def _apart(report: Report, found: list[Domain]) -> None:
    """Reports subnets that overlap. In the order of addresses, an overlapping subnet lies inside an earlier
    one, so each subnet is compared only with the last one that encloses it.
    """
    known: list[tuple[Subnet, int, str, str]] = [
        (ipaddress.ip_network(subnet), at, "segments", d.segments[0])
        for at, d in enumerate(found)
        for subnet in d.subnets
    ]
    given = [(name, link.subnet) for name, link in report.model.links.items() if name in report.names.wires]
    known += [
        (ipaddress.ip_network(subnet), len(found) + at, "links", name)
        for at, (name, subnets) in enumerate(given)
        for subnet in subnets
    ]
    around: tuple[Subnet, int, str, str] | None = None
    for second in sorted(known, key=_place):
        if around is None or not overlap(around[0], second[0]):
            around = second
            continue
        first, later = sorted((around, second), key=lambda item: item[1])
        remedy = "choose another subnet"
        rule = f"overlaps {first[0]} of {first[2][:-1]} {first[3]}"
        if later[2] == "segments":
            rule, remedy = f"{rule}, which no link joins to it", f"{remedy}, or join them by a link"
        report.add((later[2], later[3], "subnet"), str(later[0]), rule, remedy)


def _place(known: tuple[Subnet, int, str, str]) -> tuple[int, int, int, int]:
    """Returns the sort key of a subnet: by family, then by address, larger subnets first."""
    subnet, at, *_ = known
    return subnet.version, int(subnet.network_address), subnet.prefixlen, at


def _wide_enough(report: Report) -> None:
    """Reports MTUs that are too small for IPv6 on every segment and link with IPv6, and images
    without IPv6.
    """
    for name, segment in report.model.segments.items():
        domain = report.domains[name]
        if "IPv6" in map(family, domain.subnets):
            _least(report, ("segments", name, "mtu"), segment.mtu)
    for name, subnets in report.wires.items():  # raises TopologyError if no subnet is free for a link
        mtu = report.model.links[name].mtu
        if mtu is not None and "IPv6" in map(family, subnets):
            _least(report, ("links", name, "mtu"), mtu)
    for section, machines in (("nodes", report.model.nodes), ("groups", report.model.groups)):
        for name, machine in machines.items():
            on = [report.domains[s].subnets for s in machine.segment if s in report.domains]
            if not any("IPv6" in map(family, subnets) for subnets in on):
                continue
            if machine.mtu is not None:
                _least(report, (section, name, "mtu"), machine.mtu)
            if machine.kind == "vm" and machine.image == WITHOUT_IPV6:
                rule = f"the kernel of {machine.image} has no IPv6"
                report.add((section, name, "image"), machine.image, rule, "write `image: builtin`")


def _least(report: Report, path: Path, mtu: int) -> None:
    if mtu < IPV6_LEAST_MTU:
        rule = f"is less than {IPV6_LEAST_MTU}, the least that IPv6 works with (RFC 8200, 5)"
        report.add(path, mtu, rule, f"write {IPV6_LEAST_MTU} or more, or an IPv4 subnet")


def _fixed(report: Report) -> None:
    taken: dict[str, str] = {}
    for name, node in report.model.nodes.items():
        if not node.address:
            continue
        path: Path = ("nodes", name, "address")
        if not node.segment:
            rule = "is on no segment, and addresses of links are given by the links"
            report.add(path, " and ".join(node.address), rule, "write `subnet:` at its link instead")
            continue
        domain = report.domains.get(node.segment[0])
        if domain is None or not domain.subnets:
            continue
        for one in node.address:
            _one_fixed(report, path, one, domain, taken.get(one))
            taken.setdefault(one, name)


def _one_fixed(report: Report, path: Path, fixed: str, domain: Domain, owner: str | None) -> None:
    """Reports a fixed address that is not a host address in the domain's subnet of its family, or that the
    node `owner` has already.
    """
    segment = report.model.nodes[str(path[1])].segment[0]
    subnet = next((one for one in domain.subnets if family(one) == family(fixed)), domain.subnets[0])
    network, address = ipaddress.ip_network(subnet), ipaddress.ip_address(fixed)
    last = network[-2] if network.version == 4 else network[-1]
    if address not in network or not network[1] <= address <= last:  # type: ignore[operator]
        rule = f"is not a host's address in {network} of segment {segment}"
        report.add(path, fixed, rule, f"write one from {network[1]} to {last}")
    elif owner is not None:
        report.add(path, fixed, f"is already that of node {owner}", "choose another one")


def _members(report: Report) -> Counter[str]:
    return Counter(segment for machine in report.names.nodes.values() for segment in machine.segment)


def _room(report: Report, found: list[Domain]) -> None:
    count = _members(report)
    for domain in found:
        needed = sum(count[name] for name in domain.segments)
        for subnet in domain.subnets:
            if needed > hosts(subnet):
                rule = f"has {hosts(subnet)} addresses for {needed} interfaces"
                owner = next(name for name in domain.segments if report.model.segments[name].subnet)
                report.add(("segments", owner, "subnet"), subnet, rule, "write a larger subnet")


def _ports(report: Report) -> None:
    ports = _members(report)
    for link in report.model.links.values():
        if set(link.between) <= set(report.model.segments):
            ports.update(link.between)
    for name, count in ports.items():
        if count > BRIDGE_PORTS and name in report.model.segments:
            rule = f"has {count} ports, but a Linux bridge has at most {BRIDGE_PORTS}"
            report.add(("segments", name), None, rule, "spread the nodes over segments joined by links")
