"""Turns wires into LANs where the imported addresses differ from those that a plan would give to the ends: a
topology can fix a node's address only on a segment.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Mapping

from .network import End, Lan, Network, Wire

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Addresses = Callable[[Network, End], list[Interface]]
# Prefix lengths of such LANs: a segment must have room for the members of a bridge.
LARGEST, SMALLEST = 16, {4: 29, 6: 125}


def keep_addresses(network: Network, wires: Mapping[str, Wire], addresses: Addresses) -> None:
    """Turns a wire of `wires` (by name) into a LAN if an end has another address than a plan would give and
    no fixed address yet: a node can fix one, on its first segment. Skips a wire whose name a machine or LAN
    has.
    """
    fixed = {node for lan in network.lans.values() for node, _ in lan.members}
    for name, wire in wires.items():
        keeper = next((end for end in _others(network, wire, addresses) if end[0] not in fixed), None)
        if keeper is not None and name not in {*network.lans, *network.machines}:
            fixed |= {node for node, _ in wire.ends}
            _as_segment(network, name, wire, keeper)


def _others(network: Network, wire: Wire, addresses: Addresses) -> list[End]:
    """Returns the ends of a wire of which an address differs from the one that the plan gives: the lowest two
    addresses of each subnet, in the order of the ends. Returns no end if an address is absent, the wire has a
    cost, or its two addresses of one family are not different ones of one subnet from /16 to /29 (IPv6:
    /125); and none for a wire of IPv6 alone.
    """
    first, second = (addresses(network, end) for end in wire.ends)
    if not first or first[0].version != 4 or [a.version for a in first] != [b.version for b in second]:
        return []
    found: dict[End, None] = {}
    for a, b in zip(first, second, strict=True):
        sized = LARGEST <= a.network.prefixlen <= SMALLEST[a.version]
        if wire.cost or a.network != b.network or a.ip == b.ip or not sized:
            return []
        planned = itertools.islice(a.network.hosts(), 2)
        for end, own, here in zip(wire.ends, (a, b), planned, strict=True):
            if own.ip != here:
                found[end] = None
    return [end for end in wire.ends if end in found]


def _as_segment(network: Network, name: str, wire: Wire, keeper: End) -> None:
    network.wires.remove(wire)
    network.lans[name] = Lan(name, list(wire.ends), mtu=wire.mtu, origin=wire.origin)
    if wire.impairments or wire.down:
        turned = {"forward": "reverse", "reverse": "forward", "both": "both"}
        first = wire.ends[0] == keeper
        sides = {side if first else turned[side]: what for side, what in wire.impairments.items()}
        network.lines.append(Wire((keeper, (name, "")), None, sides, wire.down, origin=wire.origin))
