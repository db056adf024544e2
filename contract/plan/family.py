"""Distinguishes IPv4 from IPv6, and finds addresses by which nodes reach each other.

Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from .network import Interface

Family = Literal["IPv4", "IPv6"]
Subnet = IPv4Network | IPv6Network
FAMILIES: tuple[Family, Family] = ("IPv4", "IPv6")
BITS: Mapping[Family, int] = {"IPv4": 32, "IPv6": 128}
EVERYWHERE: Mapping[Family, str] = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}  # what a default route leads to
# The kernel has no IPv6 on a device below it (IPV6_MIN_MTU in include/uapi/linux/ipv6.h; RFC 8200, 5).
IPV6_LEAST_MTU = 1280
DEFAULT = "default"  # the same, of whichever family its neighbour has


def family(text: str) -> Family:
    """Returns the family of an address or a subnet in its usual text form."""
    return "IPv6" if ":" in text else "IPv4"


def is_address(text: str) -> bool:
    """Returns whether a text is an address and no name; names begin with a letter and have no colon."""
    return ":" in text or text[:1].isdigit()


def overlap(a: Subnet, b: Subnet) -> bool:
    """Returns whether two subnets have addresses in common; False for subnets of different families."""
    if isinstance(a, IPv4Network):
        return isinstance(b, IPv4Network) and a.overlaps(b)
    return isinstance(b, IPv6Network) and a.overlaps(b)


def speaks_ipv6(cards: Iterable[Interface], segments: Collection[str]) -> bool:
    """Returns whether a node uses IPv6: it has an IPv6 address, or an interface on one of `segments`, which
    enable IPv6.
    """
    return any(card.segment in segments or family(card.address) == "IPv6" for card in cards)


def has_ipv6(cards: Iterable[Interface]) -> bool:
    """Returns whether an interface has an IPv6 address."""
    return any(family(card.address) == "IPv6" for card in cards)


def spoken_to(theirs: Iterable[Interface], ours: Iterable[Interface], subnets: Mapping[str, str]) -> str:
    """Returns the address at which `ours` reach `theirs`: in a common subnet, else the first of a common
    family, else their first. `subnets` maps segments, and links between nodes, to subnets.
    """
    theirs, ours = list(theirs), list(ours)
    on = {subnets[card.segment] for card in ours}
    if shared := next((c.address for c in theirs if subnets[c.segment] in on), None):
        return shared
    families = {family(card.address) for card in ours}
    return next((c.address for c in theirs if family(c.address) in families), theirs[0].address)
