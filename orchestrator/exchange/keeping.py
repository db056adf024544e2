"""Turns wires into LANs where the imported addresses differ from those that a plan would give to the ends: a
topology can fix a node's address only on a segment.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Mapping

from .network import End, Lan, Network, Wire

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Address = Callable[[Network, End], Interface | None]
LARGEST, SMALLEST = 16, 29  # lengths of prefixes: a segment has room for a bridge's members


def keep_addresses(network: Network, wires: Mapping[str, Wire], address: Address) -> None:
    """Turns a wire of `wires` (by name) into a LAN if an end has another address than a plan would give and
    no fixed address yet: a node can fix one, on its first segment. Skips a wire whose name a machine or LAN
    has.
    """
    fixed = {node for lan in network.lans.values() for node, _ in lan.members}
    for name, wire in wires.items():
        keeper = next((end for end in _others(network, wire, address) if end[0] not in fixed), None)
        if keeper is not None and name not in {*network.lans, *network.machines}:
            fixed |= {node for node, _ in wire.ends}
            _as_segment(network, name, wire, keeper)


def _others(network: Network, wire: Wire, address: Address) -> list[End]:
    """Returns the ends of a wire whose address differs from the one that the plan gives: the lowest two
    addresses of the subnet, in the order of the ends. Returns no end if an address is absent, the wire has a
    cost, or its two addresses are not different IPv4 addresses of one subnet from /16 to /29.
    """
    given = [address(network, end) for end in wire.ends]
    first, second = given
    if (
        first is None
        or second is None
        or wire.cost
        or first.network != second.network
        or first.ip == second.ip
    ):
        return []
    if first.version != 4 or not LARGEST <= first.network.prefixlen <= SMALLEST:
        return []
    planned = itertools.islice(first.network.hosts(), 2)
    return [end for end, own, here in zip(wire.ends, (first, second), planned, strict=True) if own.ip != here]


def _as_segment(network: Network, name: str, wire: Wire, keeper: End) -> None:
    network.wires.remove(wire)
    network.lans[name] = Lan(name, list(wire.ends), mtu=wire.mtu, origin=wire.origin)
    if wire.impairments or wire.down:
        turned = {"forward": "reverse", "reverse": "forward", "both": "both"}
        first = wire.ends[0] == keeper
        sides = {side if first else turned[side]: what for side, what in wire.impairments.items()}
        network.lines.append(Wire((keeper, (name, "")), None, sides, wire.down, origin=wire.origin))
