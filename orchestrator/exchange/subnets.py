"""Chooses the subnets of an imported network's wires and LANs: those of its addresses, or else free ones."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ..language.problem import Problem, TopologyError
from .keeping import Interface
from .network import End, Lan, Network, Wire

SHORTEST_PREFIX, LONGEST_PREFIX = 16, 30  # IPv4 prefix lengths that `subnet:` accepts
LONGEST_PREFIX6 = 126  # the longest IPv6 prefix length that `subnet:` accepts
Subnet = ipaddress.IPv4Network | ipaddress.IPv6Network


def subnets_of(network: Network, changed: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields the name and subnets of each wire whose addresses are in one subnet of a valid size, and of each
    LAN; LANs that links join have one subnet. Where addresses of IPv4 and IPv6 stand side by side there is
    one subnet of each family. A LAN without such addresses gets its own subnet from the file, or else the
    next one from 10.200.0.0 on that overlaps no subnet of the others; a wire gets the plan's. Adds lines on
    other subnets to `changed`; TopologyError if no subnet is left.
    """
    taken: list[str] = []
    for name, wire in named_wires(network):
        ends = list(wire.ends)
        subnet, second = _common(network, ends, name, changed), _second(network, ends, name, changed)
        if subnet is not None and (second is not None or not has_both(network, ends)):
            taken.append(subnet)
            yield name, [subnet] if second is None else [subnet, second]
    without: list[list[Lan]] = []
    seconds: dict[str, list[str]] = {}
    for lans in joined(network):
        members = [end for lan in lans for end in lan.members]
        given = next((lan.subnet for lan in lans if lan.subnet), None)
        second = _second(network, members, lans[0].name, changed)
        seconds[lans[0].name] = [] if second is None else [second]
        if (subnet := _common(network, members, lans[0].name, changed) or given) is None:
            without.append(lans)
        else:
            taken.append(subnet)
            yield from ((lan.name, [subnet, *seconds[lans[0].name]]) for lan in lans)
    free = _free([ipaddress.ip_network(subnet) for subnet in taken])
    for lans in without:
        if (subnet := next(free, None)) is None:
            rule, remedy = "no subnet from 10.200.0.0 on is free for it", "give its machines addresses"
            raise TopologyError([Problem(network.source or network.tool, 0, lans[0].name, "", rule, remedy)])
        yield from ((lan.name, [subnet, *seconds[lans[0].name]]) for lan in lans)


def _second(network: Network, ends: list[End], name: str, changed: list[str]) -> str | None:
    """Returns the subnet of IPv6 of ends that have addresses of IPv4, too; None if none has both, or their
    subnets of IPv6 are different ones or of a size that has no counterpart, which adds a line to `changed`.
    """
    if not has_both(network, ends):
        return None
    found = {one.network for end in ends for one in addresses_of(network, end) if one.version == 6}
    said = ", ".join(sorted(str(one) for one in found))
    if len(found) > 1:
        changed.append(f"{name}: its ends are in {said}; it has a subnet of its own here")
        return None
    (subnet,) = found
    if not SHORTEST_PREFIX <= subnet.prefixlen <= LONGEST_PREFIX6:
        size = "small" if subnet.prefixlen > LONGEST_PREFIX6 else "large"
        changed.append(f"{name}: {said} is too {size} for a subnet here; it has one of its own")
        return None
    without = sorted({node for node, port in ends if not _has_ipv6(network, (node, port))})
    if without:
        changed.append(f"{name}: {', '.join(without)[:100]}: has an address of {said} here, too")
    return said


def _has_ipv6(network: Network, end: End) -> bool:
    return any(one.version == 6 for one in addresses_of(network, end))


def has_both(network: Network, ends: list[End]) -> bool:
    """Returns whether one of the ends has addresses of both families."""
    return any(len(addresses_of(network, end)) > 1 for end in ends)


def _common(network: Network, ends: list[End], name: str, changed: list[str]) -> str | None:
    found = {address.network for end in ends if (address := address_of(network, end)) is not None}
    if not found:
        return None
    if len(found) > 1:
        said = ", ".join(sorted(str(one) for one in found))
        changed.append(f"{name}: its ends are in {said}; it has a subnet of its own here")
        return None
    (subnet,) = found
    if subnet.version == 4 and subnet.prefixlen < SHORTEST_PREFIX and (inner := _narrower(network, ends)):
        changed.append(f"{name}: {subnet} is {inner} here: no subnet is larger, and its addresses are in it")
        return inner
    if subnet.version == 4 and not SHORTEST_PREFIX <= subnet.prefixlen <= LONGEST_PREFIX:
        size = "small" if subnet.prefixlen > LONGEST_PREFIX else "large"
        changed.append(f"{name}: {subnet} is too {size} for a subnet here; it has one of its own")
        return None
    return str(subnet)


def _narrower(network: Network, ends: list[End]) -> str | None:
    """Returns the /16 subnet around the first address of these ends; None if another end's address is outside
    of it, or if the subnet overlaps with that of any other interface.
    """
    own = [str(one.ip) for end in ends if (one := address_of(network, end)) is not None]
    inner = ipaddress.ip_interface(f"{own[0]}/{SHORTEST_PREFIX}").network
    places = {(machine.name, port) for machine in network.machines.values() for port in machine.addresses}
    others = [one for end in places - set(ends) if (one := address_of(network, end)) is not None]
    alone = not any(overlap(one.network, inner) for one in others)
    return str(inner) if alone and all(ipaddress.ip_address(one) in inner for one in own) else None


def _free(taken: list[Subnet]) -> Iterator[str]:
    """Yields the subnets 10.200.0.0/16 to 10.249.0.0/16, then 10.250.0.0/24 to 10.255.255.0/24, without those
    that overlap one of `taken`.
    """
    large = (f"10.{block}.0.0/16" for block in range(200, 250))
    small = (f"10.{block}.{part}.0/24" for block in range(250, 256) for part in range(256))
    for text in (*large, *small):
        if not any(overlap(ipaddress.ip_network(text), one) for one in taken):
            yield text


def joined(network: Network) -> list[list[Lan]]:
    """Returns all LANs in groups: LANs that links join, directly or by other LANs, are one group and have one
    subnet; any other LAN is a group by itself.
    """
    group = {name: [lan] for name, lan in network.lans.items()}
    for line in network.lines:
        a, b = (group.get(node) for node, _ in line.ends)
        if a is not None and b is not None and a is not b:
            a += b
            group |= {lan.name: a for lan in b}
    return list({id(lans): lans for lans in group.values()}.values())


def named_wires(network: Network) -> Iterator[tuple[str, Wire]]:
    """Yields wires with names made from their ends; a number tells parallel wires apart."""
    taken: set[str] = set()
    last: dict[str, int] = {}  # beginning of a name -> the last number used
    for wire in network.wires:
        name = stem = "-".join(node for node, _ in wire.ends)[:34].rstrip("-")
        while name in taken:
            last[stem] = last.get(stem, 1) + 1
            name = f"{stem}-{last[stem]}"
        taken.add(name)
        yield name, wire


def address_of(network: Network, end: End) -> Interface | None:
    """Returns the end's address, IPv4 if it has one; None without addresses."""
    node, port = end
    given = [ipaddress.ip_interface(text) for text in network.machines[node].addresses.get(port, ())]
    return next((one for one in given if one.version == 4), given[0] if given else None)


def addresses_of(network: Network, end: End) -> list[Interface]:
    """Returns the end's addresses that an interface here can have: the first of IPv4, and the first of IPv6
    that is not link-local.
    """
    node, port = end
    given = [ipaddress.ip_interface(text) for text in network.machines[node].addresses.get(port, ())]
    usable = [one for one in given if one.version == 4 or not one.is_link_local]
    return [one for kind in (4, 6) for one in [next((u for u in usable if u.version == kind), None)] if one]


def overlap(a: Subnet, b: Subnet) -> bool:
    return a.version == b.version and a.overlaps(b)
