"""Spreads a placed network over hosts: sets each link's host or hosts, and adds the tunnels."""

from __future__ import annotations

import dataclasses

from contract.plan import Direction, Link, Tunnel

from ..naming import core_netns
from ..network import Network
from .parts import Placement
from .tunnels import Tunnels


def spread(lab: str, network: Network, placement: Placement, port: int) -> tuple[Tunnel, ...]:
    """Sets the hosts of every link of the network, and returns the tunnels that segments and links on several
    hosts need. port: the tunnels' UDP port.
    """
    tunnels = Tunnels(lab, network.names, port)
    ends = segment_hosts(network, placement)
    made = [
        tunnels.make(segment.name, segment.bridge, segment.mtu, ends[segment.name])
        for segment in network.segments
        if len(ends[segment.name]) > 1
    ]
    links = list[Link]()
    for link in network.links:
        at = _hosts(link, placement)
        if at[0] == at[1]:
            links.append(_on(link, *at))
        else:
            moved, tunnel = _split(lab, link, network, tunnels, at)
            links.append(_on(moved, *at))
            made.append(tunnel)
    network.links = tuple(links)
    return tuple(made)


def segment_hosts(network: Network, placement: Placement) -> dict[str, tuple[str, ...]]:
    """Returns, by segment, the hosts with a bridge of the segment (for its members, its links or its
    placement), in the order of the hosts; the first host if there is none.
    """
    found: dict[str, dict[str, None]] = {segment.name: {} for segment in network.segments}
    for node, cards in network.interfaces.items():
        for card in cards:
            if card.segment in found:
                found[card.segment][placement.of["node", node]] = None
    for link in network.links:
        if link.kind == "segments":
            for name in (link.a, link.b):
                found[name][placement.of["link", link.name]] = None
    for name, at in found.items():
        if ("segment", name) in placement.of:
            at[placement.of["segment", name]] = None
    order = [host.name for host in placement.hosts]
    return {
        name: tuple(host for host in order if host in (at or {order[0]: None})) for name, at in found.items()
    }


def _hosts(link: Link, placement: Placement) -> tuple[str, str]:
    """Returns the host of the link's first end and that of its second end."""
    if link.kind == "segments":
        return (placement.of["link", link.name],) * 2
    if link.kind == "medium":
        return (placement.of["segment", link.a],) * 2
    a = placement.of["node", link.a]
    return a, placement.of["node", link.b] if link.kind == "nodes" else a


def _on(link: Link, a: str, b: str) -> Link:
    forward = dataclasses.replace(link.forward, host=a, far_host=b)
    reverse = dataclasses.replace(link.reverse, host=b, far_host=a)
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def _split(
    lab: str, link: Link, network: Network, tunnels: Tunnels, at: tuple[str, str]
) -> tuple[Link, Tunnel]:
    """Splits a link between nodes on two hosts: each host gets a bridge that joins the node's port and the
    tunnel; changes the interfaces of `network`.

    The qdisc of packets from a light node stays inside the node; that of a link through the core is on the
    tunnel device.
    """
    bridge = network.names.allot(f"x-{link.name}")
    for node in (link.a, link.b):
        cards = network.interfaces[node]
        index, card = next((i, c) for i, c in enumerate(cards) if c.segment == link.name)
        port = card.port or network.names.allot(f"{node}-{index}" if index else node)
        moved = dataclasses.replace(card, port=port, bridge=bridge)
        network.interfaces[node] = tuple(moved if c is card else c for c in cards)
    tunnel = tunnels.make(link.name, bridge, card.mtu, at)
    if not link.through_core:
        return link, tunnel
    core = core_netns(lab)
    forward = Direction(
        link.forward.impairment, core, tunnel.device, core, tunnel.device, trace=link.forward.trace
    )
    reverse = dataclasses.replace(forward, impairment=link.reverse.impairment, trace=link.reverse.trace)
    return dataclasses.replace(link, forward=forward, reverse=reverse), tunnel
