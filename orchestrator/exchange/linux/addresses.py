"""Parses addresses in the forms of Linux commands, and adds them to machines or removes them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ..network import Machine

# Prefix lengths of IPv4 addresses without a mask, for net-tools, by their first bits (RFC 791, classes A to
# C).
CLASSES = ((128, 8), (192, 16), (224, 24))


def is_a(kind: Any, text: str) -> bool:
    """Returns whether the class `kind`, one of `ipaddress`, accepts the text."""
    try:
        kind(text)
    except ValueError:
        return False
    return True


def interface(text: str, mask: str | None = None) -> str | None:
    """Returns ADDRESS/LENGTH. The length comes from the text or else from `mask` (a length, dotted or 0x
    form); by default it is the full length, as with `ip`. None if the text is no address.
    """
    whole = text if mask is None or "/" in text else f"{text}/{_length(mask)}"
    return str(ipaddress.ip_interface(whole)) if is_a(ipaddress.ip_interface, whole) else None


def by_class(text: str) -> str | None:
    """Returns ADDRESS/LENGTH. An IPv4 address without a length gets that of its class (A 8, B 16, C 24, else
    32), as with `ifconfig`; an IPv6 address gets 128. None if the text is no address.
    """
    if "/" in text or not is_a(ipaddress.IPv4Address, text):
        return interface(text)
    first = int(text.partition(".")[0])
    length = next((bits for limit, bits in CLASSES if first < limit), 32)
    return f"{text}/{length}"


def subnet(text: str, mask: str | None = None) -> str | None:
    """Returns a route's destination: "default" in its spellings (`any`, 0.0.0.0/0, ::/0), or a subnet without
    host bits, by default of full length; None if the text is neither.
    """
    if text in ("default", "any", "0/0", "0.0.0.0/0", "::/0") or (
        text == "0.0.0.0" and mask in ("0.0.0.0", "0", None)
    ):
        return "default"
    found = interface(text, mask)
    return None if found is None else str(ipaddress.ip_interface(found).network)


def _length(mask: str) -> str:
    """Returns a mask of the form 0xffffff00 as a dotted one, and other text unchanged."""
    hexadecimal = re.fullmatch(r"0x[0-9a-fA-F]{8}", mask)
    return str(ipaddress.IPv4Address(int(mask, 16))) if hexadecimal else mask


def is_vlan(tag: str) -> bool:
    """Returns whether the text is the tag of a VLAN for Linux: 0 to 4094 (4095 is reserved, IEEE 802.1Q)."""
    return tag.isdecimal() and int(tag) <= 4094


def give(machine: Machine, port: str, address: str) -> int:
    """Adds an address to the interface `port`; returns the exit status of `ip`: 0, or 2 if the interface has
    it already.
    """
    own = machine.addresses.setdefault(port, [])
    if address in own:
        return 2
    own.append(address)
    return 0


def take(machine: Machine, port: str, address: str | None = None) -> int:
    """Removes an address, in any length if `address` has none or /32, or all addresses of the interface if it
    is None. Returns the exit status of `ip`: 0, or 2 if the interface does not have the address.
    """
    own = machine.addresses.get(port, [])
    if address is None:
        machine.addresses.pop(port, None)
        return 0
    found = [one for one in own if one == address or one.partition("/")[0] == address.removesuffix("/32")]
    for one in found:
        own.remove(one)
    return 0 if found else 2
