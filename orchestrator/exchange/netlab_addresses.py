"""Gives the ends of netlab's links the addresses that netlab gives them: static ones, by node number, in
order.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .netlab_forms import mapping

Subnet = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Place:
    """One end of a link: the node's name, its number in the lab, and the keys of its interface."""

    node: str
    number: int
    own: Mapping[str, Any]


def numbers(nodes: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """Returns the number of each node, given as (name, its `id` or None): netlab counts from 1 in the order
    of the file, and skips the numbers that nodes state.
    """
    listed = list(nodes)
    stated = {name: given for name, given in listed if isinstance(given, int) and given > 0}
    found, last = dict(stated), 0
    for name, _ in listed:
        if name not in stated:
            last = next(n for n in range(last + 1, last + len(stated) + 2) if n not in stated.values())
            found[name] = last
    return {name: found[name] for name, _ in listed}


def addresses(prefix: Any, ends: list[Place], is_p2p: bool, leave: Callable[[str], None]) -> list[list[str]]:
    """Returns the addresses of each end, such as [10.0.0.1/24], at most one of each family. prefix: a subnet,
    a mapping with `ipv4`, `ipv6` and `allocation`, or None. Passes parts that are not carried over to
    `leave`. Raises ValueError for a subnet or address that is none, or if the subnet is too small.
    """
    given = prefix if isinstance(prefix, dict) else {"ipv4": prefix}
    for key in sorted(given.keys() - {"ipv4", "ipv6", "allocation"}):
        leave(f"prefix.{key}")
    found: list[list[str]] = [[] for _ in ends]
    for family in ("ipv4", "ipv6"):
        if family == "ipv6" and given.get(family) is None and not _own(ends, family):
            continue
        if family == "ipv4" and given.get(family) is None and given.get("ipv6") is not None:
            continue
        text = given.get(family)
        subnet = None
        if isinstance(text, bool):
            leave(f"prefix {str(text).lower()}: the link has a subnet of the plan's")
        elif text is not None:
            subnet = ipaddress.ip_network(str(text))
        hosts = _hosts(subnet, ends, is_p2p, given.get("allocation"))
        for own, end, host in zip(found, ends, hosts, strict=True):
            if (address := _address(end, family, subnet, host, leave)) is not None:
                own.append(address)
    return found


def _own(ends: list[Place], family: str) -> bool:
    """Returns whether an end states an address of the family itself."""
    return any(isinstance(end.own.get(family), str) for end in ends)


def _hosts(subnet: Subnet | None, ends: list[Place], is_p2p: bool, allocation: Any) -> list[int]:
    """Returns the place in the subnet that netlab gives to each end: by the order of the nodes' names between
    two routers, by the node's number where the subnet has room for it, else by the order on the link.
    """
    if subnet is None:
        return [0] * len(ends)
    start = 1 if subnet.num_addresses > 2 else 0
    room = subnet.num_addresses - (2 if subnet.num_addresses > 2 else 0)
    if allocation not in (None, "id_based", "sequential", "p2p"):
        raise ValueError(f"allocation: {allocation} is not known")
    by_name = is_p2p or subnet.num_addresses == 2
    if allocation == "p2p" or (allocation is None and by_name):
        order = sorted(range(len(ends)), key=lambda one: ends[one].node)
        return [start + order.index(one) for one in range(len(ends))]
    if allocation == "id_based" or (allocation is None and max(end.number for end in ends) <= room):
        return [end.number for end in ends]
    if len(ends) > room:
        raise ValueError(f"{subnet} has no room for {len(ends)} nodes")
    return [start + one for one in range(len(ends))]


def _address(
    end: Place, family: str, subnet: Subnet | None, host: int, leave: Callable[[str], None]
) -> str | None:
    own = end.own.get(family)
    if isinstance(own, bool):
        leave(f"{family}: {str(own).lower()} of {end.node}: its interface has an address here")
        return None
    if isinstance(own, str):
        if "/" not in own and subnet is None:
            leave(f"{family}: {own} of {end.node}, without a prefix")
            return None
        return str(
            ipaddress.ip_interface(own if subnet is None or "/" in own else f"{own}/{subnet.prefixlen}")
        )
    if subnet is None:
        if own is not None:
            leave(f"{family}: {own} of {end.node}, without a prefix")
        return None
    place = own if isinstance(own, int) else host
    if not -subnet.num_addresses <= place < subnet.num_addresses:
        raise ValueError(f"{subnet} has no address number {place}")
    return f"{subnet[place]}/{subnet.prefixlen}"


def is_p2p(kind: Any, ends: list[str], hosts: set[str]) -> bool:
    """Returns whether netlab takes a link of type `kind` (None: not given) as one between two routers."""
    return kind == "p2p" if kind else len(ends) == 2 and not hosts & set(ends)


def sizes(
    ends: list[Place], link: Any, nodes: Mapping[str, Any], default: Any, leave: Callable[[str], None]
) -> int | None:
    """Returns the MTU of a link: the interface's, else the link's, else the node's, else `default`; the
    smallest of its ends (reported if they differ); None if the file states none. nodes: name -> its `mtu`.
    Raises ValueError for a value that is no number.
    """
    found = []
    for end in ends:
        values = (end.own.get("mtu"), link, nodes.get(end.node), default)
        value = next((one for one in values if one is not None), None)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(str(value)[:60])
        found.append(value)
    given = [one for one in found if one is not None]
    if len(set(found)) > 1:
        said = ", ".join(f"{end.node} {size or 'none'}" for end, size in zip(ends, found, strict=True))
        leave(f"the MTUs of a link's ends ({said}): all have {min(given)}")
    return min(given) if given else None


def shaping(link: Any, end: Place) -> dict[str, Any]:
    """Returns the `tc` of what leaves an end: the interface's keys over the link's."""
    return {**mapping(link), **mapping(end.own.get("tc"))}
