"""Checks ends of WireGuard tunnels: peers that name each other, and subnets that lead into one tunnel."""

from __future__ import annotations

import ipaddress
from itertools import combinations

from contract.plan.family import overlap

from ...language.source import Path
from ..checking import Checks, Here, joined, light
from .file import Wireguard, WireguardOptions


def check(report: Checks, here: Here, model: Wireguard) -> None:
    """Reports the mistakes of one end."""
    options, path = model.wireguard, (*here.path, "wireguard")
    light(report, here, path, "whose image has its own tunnels")
    if here.in_group:
        rule = "stands at a group, and each end has an address and peers of its own"
        report.add(path, None, rule, "write the ends under `nodes:`")
        return
    node = here.nodes[0]
    if len([one for one in report.programs(node).values() if isinstance(one, Wireguard)]) > 1:
        report.add(path, None, "a node has one device of WireGuard", "write all its peers at one")
        return
    _inside(report, options, path)
    allowed = [(path_of, ipaddress.ip_network(net)) for path_of, net in _allowed(options, path)]
    for (first, a), (second, b) in combinations(allowed, 2):
        if first[:-1] != second[:-1] and overlap(a, b):
            rule = f"overlaps {a}, which another peer has: a packet goes to one of them"
            report.add(second, str(b), rule, "name each subnet at one peer")
    for name in options.peers:
        _peer(report, here, (*path, "peers", name), name, options)


def _allowed(options: WireguardOptions, path: Path) -> list[tuple[Path, str]]:
    return [
        ((*path, "peers", name, "allows", index), net)
        for name, peer in options.peers.items()
        for index, net in enumerate(peer.allows)
    ]


def _inside(report: Checks, options: WireguardOptions, path: Path) -> None:
    """Reports an address inside that a segment of the lab has, too."""
    inside = ipaddress.ip_interface(options.address).network
    segments = {segment for node in report.everyone for segment in report.segments(node)}
    for segment in sorted(segments):
        for kind in ("IPv4", "IPv6"):
            subnet = report.subnet(segment, kind)
            if subnet is not None and overlap(inside, ipaddress.ip_network(subnet)):
                rule = f"overlaps the subnet of segment {segment}, {subnet}"
                report.add((*path, "address"), options.address, rule, "take a subnet that the lab has not")
                return


def _peer(report: Checks, here: Here, path: Path, name: str, options: WireguardOptions) -> None:
    node = here.nodes[0]
    if not report.node(path, name):
        return
    if name == node:
        report.add(path, name, "is this end itself", "name the other one")
        return
    theirs = next((one for one in report.programs(name).values() if isinstance(one, Wireguard)), None)
    if theirs is None or node not in theirs.wireguard.peers:
        rule = f"{name} has no `wireguard` with the peer {node}: both ends must know each other"
        report.add(path, name, rule, f"write `wireguard: {{address: ..., peers: [{node}]}}` there")
        return
    other = ipaddress.ip_interface(theirs.wireguard.address)
    if other.network != ipaddress.ip_interface(options.address).network:
        rule = f"{name} has {other} inside, another subnet than {options.address}"
        report.add(path, name, rule, "give both ends addresses of one subnet")
    elif other == ipaddress.ip_interface(options.address):
        report.add(path, name, f"{name} has the same address inside, {other}", "give each end its own")
    if not joined(report, here, path, name, name):
        return
    for index, net in enumerate(options.peers[name].allows):
        for segment in report.segments(name):
            if segment in report.segments(node) and net == report.subnet(segment):
                rule = (
                    "is the subnet over which the tunnel's own packets go: they would enter the tunnel again"
                )
                report.add((*path, "allows", index), net, rule, "name a subnet behind the other end")
