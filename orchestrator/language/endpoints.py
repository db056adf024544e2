"""Parses endpoints outside the lab, ADDRESS:PORT, as topology files and the command line write them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from .units import UnitError

_WRITTEN = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})")
FORM = 'write for example "192.0.2.7:5432", or "[2001:db8::7]:5432"'


def endpoint(value: Any) -> str:
    """Returns ADDRESS:PORT in its shortest form, with brackets around an IPv6 address. Raises UnitError for
    anything else: a name, a subnet, a range of ports, a port of 0, and an address of no single machine.
    """
    found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UnitError("is not ADDRESS:PORT, one address and one port", FORM)
    try:
        address = ipaddress.ip_address(found["six"] or found["four"])
    except ValueError:
        raise UnitError("has no IP address before the port", FORM) from None
    if not 1 <= int(found["port"]) <= 65535:
        raise UnitError("has no port from 1 to 65535", FORM)
    if address.is_multicast or address.is_unspecified or str(address) == "255.255.255.255":
        raise UnitError(f"has {address}, which is no address of one machine", FORM)
    return written(str(address), int(found["port"]))


def written(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def split(text: str) -> tuple[str, int]:
    """Returns the address, without brackets, and the port of an endpoint in its shortest form."""
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


def endpoints(value: Any) -> list[str]:
    """Returns the endpoints of a file's `outside`: one text, a list, or a mapping whose values are empty, as
    YAML reads `{192.0.2.7:5432}`.
    """
    if isinstance(value, dict):
        if any(one is not None for one in value.values()):
            raise UnitError("has values beside its endpoints", f"{FORM}, without a space after the colon")
        value = list(value)
    given = value if isinstance(value, list) else [value]
    found = [endpoint(one) for one in given]
    for one in found:
        if found.count(one) > 1:
            raise UnitError(f"names {one} twice", "name it once")
    return found
