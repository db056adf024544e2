"""Distinguishes IPv4 from IPv6, and selects the address at which one node reaches another.

Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from .network import Interface

Family = Literal["IPv4", "IPv6"]
Subnet = IPv4Network | IPv6Network
FAMILIES: tuple[Family, Family] = ("IPv4", "IPv6")
BITS: Mapping[Family, int] = {"IPv4": 32, "IPv6": 128}
EVERYWHERE: Mapping[Family, str] = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}  # destination of a default route
# The kernel has no IPv6 on a device with a smaller MTU (IPV6_MIN_MTU in include/uapi/linux/ipv6.h; RFC 8200,
# 5).
IPV6_LEAST_MTU = 1280
DEFAULT = "default"  # destination of a default route in the family of the neighbour's address


def family(text: str) -> Family:
    """Returns "IPv6" for an address or subnet with a colon, else "IPv4"."""
    return "IPv6" if ":" in text else "IPv4"


def is_address(text: str) -> bool:
    """Returns True if a text is an address and no name: it contains a colon or begins with a digit."""
    return ":" in text or text[:1].isdigit()


def overlap(a: Subnet, b: Subnet) -> bool:
    """Returns True if two subnets have addresses in common; False for subnets of different families."""
    if isinstance(a, IPv4Network):
        return isinstance(b, IPv4Network) and a.overlaps(b)
    return isinstance(b, IPv6Network) and a.overlaps(b)


def speaks_ipv6(cards: Iterable[Interface], segments: Collection[str]) -> bool:
    """Returns True if a node with these interfaces uses IPv6: one of them has an IPv6 address, or is on one
    of `segments`, the segments with IPv6.
    """
    return any(card.segment in segments or "IPv6" in map(family, card.addresses) for card in cards)


def has_ipv6(cards: Iterable[Interface]) -> bool:
    """Returns True if one of the interfaces has an IPv6 address."""
    return any(family(address) == "IPv6" for card in cards for address in card.addresses)


def faces(cards: Iterable[Interface]) -> Iterator[Interface]:
    """Yields each interface once for each of its addresses (Interface.faces)."""
    for card in cards:
        yield from card.faces


def reaching(
    theirs: Iterable[Interface], ours: Iterable[Interface], kind: Family | None = None
) -> str | None:
    """Returns the address at which a node with the interfaces `ours` reaches one with `theirs`: the first of
    `theirs` in a common subnet, else the first of a common family; None if there is none. kind: only
    addresses of that family.
    """
    known = [card for card in faces(theirs) if card.address and kind in (None, family(card.address))]
    mine = [card for card in faces(ours) if card.address]
    on = {card.subnet for card in mine}
    families = {family(card.address) for card in mine}
    shared = (card.address for card in known if card.subnet in on)
    return next(shared, None) or next((c.address for c in known if family(c.address) in families), None)


def spoken_to(theirs: Iterable[Interface], ours: Iterable[Interface]) -> str:
    """Returns the address at which a node with the interfaces `ours` reaches one with `theirs`: the first of
    `theirs` in a common subnet, else the first of a common family, else the first.
    """
    theirs = list(theirs)
    return reaching(theirs, ours) or theirs[0].address
