"""Parses addresses in the forms of Linux commands, and adds them to machines."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..network import Machine

# Of an IPv4 address without a mask, for net-tools: by its first bits (RFC 791, classes A to C).
CLASSES = ((128, 8), (192, 16), (224, 24))


def is_a(kind: Any, text: str) -> bool:
    """Returns whether a text is an instance of one of ipaddress' classes."""
    try:
        kind(text)
    except ValueError:
        return False
    return True


def interface(text: str, mask: str | None = None) -> str | None:
    """Returns an address with its prefix length, the full length if none is given, as `ip` does; None if it
    is no address.
    """
    whole = text if mask is None or "/" in text else f"{text}/{_length(mask)}"
    return str(ipaddress.ip_interface(whole)) if is_a(ipaddress.ip_interface, whole) else None


def by_class(text: str) -> str | None:
    """Returns an address with its prefix length, by default that of its class, as `ifconfig` does; None if
    it is no address.
    """
    if "/" in text or not is_a(ipaddress.IPv4Address, text):
        return interface(text)
    first = int(text.partition(".")[0])
    length = next((bits for limit, bits in CLASSES if first < limit), 32)
    return f"{text}/{length}"


def subnet(text: str, mask: str | None = None) -> str | None:
    """Returns a route's destination: "default", or a subnet without host bits; None if it is neither."""
    if text in ("default", "any", "0/0", "0.0.0.0/0", "::/0") or (
        text == "0.0.0.0" and mask in ("0.0.0.0", "0", None)
    ):
        return "default"
    found = interface(text, mask)
    return None if found is None else str(ipaddress.ip_interface(found).network)


def _length(mask: str) -> str:
    return str(int(mask, 16).bit_count()) if mask.startswith("0x") and len(mask) == 10 else mask


def give(machine: Machine, port: str, address: str) -> int:
    """Adds an address; returns the status of `ip`: 2 if the interface has it already."""
    own = machine.addresses.setdefault(port, [])
    if address in own:
        return 2
    own.append(address)
    return 0


def take(machine: Machine, port: str, address: str | None = None) -> int:
    """Removes an address, or all addresses of the interface if `address` is None; returns the status of `ip`:
    2 if the interface does not have the address.
    """
    own = machine.addresses.get(port, [])
    if address is None:
        machine.addresses.pop(port, None)
        return 0
    found = [one for one in own if one == address or one.partition("/")[0] == address.removesuffix("/32")]
    for one in found:
        own.remove(one)
    return 0 if found else 2
