"""Checks that nodes have a network, and that the next hop of a route in the file is a neighbour."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from contract.plan.family import DEFAULT, EVERYWHERE, Family, Subnet, family, is_address, overlap

from ...language.source import Path
from ..nodes import Machine, Route
from .report import Report


def check(report: Report) -> None:
    """Reports nodes without a network; routes whose destination occurs twice or is not a subnet of the lab;
    and routes whose next hop does not exist, does not forward, is not a neighbour or is of another family.
    Checks nothing if segments, nodes, groups or links have problems already.
    """
    if any(report.lost(section) for section in ("segments", "nodes", "groups", "links")):
        return
    _on_a_network(report)
    if any(report.unsure("links", key) for key in ("between", "subnet")):
        return
    if any(s not in report.domains for node in report.names.nodes.values() for s in node.segment):
        return  # the check of segments reports the mistake
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            members = report.names.groups.get(name, (name,))
            for index, route in enumerate(machine.routes or ()):
                _route(report, members, machine, route, (section, name, "routes", index))


def _on_a_network(report: Report) -> None:
    wired = {node for ends in report.names.wires.values() for node in ends}
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            members = report.names.groups.get(name, (name,))
            alone = [member for member in members if member not in wired]
            if not machine.segment and alone:
                rule = f"{alone[0]} is on no segment, and no link joins it to another node"
                report.add((section, name), None, rule, "write `segment: NAME`, or a link [NODE, NODE]")


def _route(report: Report, members: tuple[str, ...], machine: Machine, route: Route, path: Path) -> None:
    same = [r for r in machine.routes or () if r.to == route.to]
    if same[0] is not route:
        report.add((*path, "to"), route.to, "stands twice", "write all its neighbours in one `via`")
    wanted = None if route.to == DEFAULT else ipaddress.ip_network(route.to)
    everywhere = wanted is None or route.to in EVERYWHERE.values()
    if wanted is not None and not everywhere and not any(overlap(wanted, s) for s in _subnets(report)):
        rule = "is a route to nowhere: no subnet of the lab has these addresses"
        report.add((*path, "to"), route.to, rule, "write one of a segment or link, or default")
    kinds = [_families(report, members, via) for via in route.via]
    for index, via in enumerate(route.via):
        if problem := _via(report, members, via):
            report.add((*path, "via", index), via, *problem)
        elif wanted is not None and family(route.to) not in kinds[index]:
            known = " and ".join(sorted(kinds[index]))
            rule = f"is a neighbour by {known}, and {route.to} is {family(route.to)}"
            report.add((*path, "via", index), via, rule, "name one on a segment or link of that family")
        elif wanted is None and not set.intersection(*map(set, kinds)):
            rule = "and the other neighbours are of different families: no packet can take either way"
            report.add((*path, "via", index), via, rule, "write a route for each")
            return


def _subnets(report: Report) -> Iterator[Subnet]:
    given = [domain.subnets for domain in report.domains.values()]
    for subnets in (*given, *report.wires.values()):
        yield from map(ipaddress.ip_network, subnets)


def _families(report: Report, members: tuple[str, ...], via: str) -> set[Family]:
    """Returns the address families in which all members can reach a neighbour."""
    if is_address(via):
        return {family(via)}
    if via not in report.names.nodes:
        return set()
    shared = set.intersection(*(_networks(report, one) for one in (*members, via)))
    return {family(subnet) for name in shared for subnet in _subnets_of(report, name)}


def _subnets_of(report: Report, network: str) -> tuple[str, ...]:
    if network.startswith("link "):
        return report.wires[network.removeprefix("link ")]
    return report.domains[network].subnets


def _via(report: Report, members: tuple[str, ...], via: str) -> tuple[str, str] | None:
    """Returns the mistake in a next hop and the remedy; None if the next hop is valid."""
    if is_address(via):
        return _address(report, members, via)
    if via not in report.names.nodes:
        return "no node is called that", "name a neighbouring node, or write its address"
    if not report.names.nodes[via].forward:
        return "does not forward", f"write `forward: true` at {via}"
    for member in members:
        if via == member or not _networks(report, member) & _networks(report, via):
            return f"is no neighbour of {member}", "name a node on one of its segments or links"
    return None


def _address(report: Report, members: tuple[str, ...], via: str) -> tuple[str, str] | None:
    try:
        address = ipaddress.ip_address(via)
    except ValueError:
        return "is neither a node nor an IP address", "name a neighbouring node"
    for member in members:
        ours = [subnet for network in _networks(report, member) for subnet in _subnets_of(report, network)]
        if not any(address in ipaddress.ip_network(subnet) for subnet in ours):
            return f"is in no subnet of {member}", "name a node on one of its segments or links"
    return None


def _networks(report: Report, node: str) -> set[str]:
    found = {report.domains[s].segments[0] for s in report.names.nodes[node].segment}
    return found | {f"link {link}" for link, ends in report.names.wires.items() if node in ends}
