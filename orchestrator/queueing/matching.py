"""Assigns packets to bands by tc's filters, and reads the filters back. DSCP and ports are matched by u32,
which every kernel with HTB has. PCP is matched by flower, since u32 does not see a VLAN tag that the kernel
keeps outside the packet data. A port matches as source or destination of TCP or UDP over IPv4 without header
options. Filters are numbered in the order of the bands, and the first that matches decides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from contract.plan import Band

from .discipline import QUEUE
from .kind import Entry, Mismatch

TCP, UDP = 6, 17
_BLOCK = re.compile(
    r"^filter (?:parent (?P<parent>\S+) )?protocol (?P<protocol>\S+) pref (?P<pref>\d+) (?P<kind>\w+) .*?"
    r"(?:flowid|classid) (?P<to>[0-9a-f]+:[0-9a-f]+)",
    re.MULTILINE,
)
_KEYS = re.compile(r"^\s+(match [0-9a-f]{8}/[0-9a-f]{8} at \d+|vlan_prio \d+)", re.MULTILINE)

Filter = tuple[str, str, tuple[str, ...], str]  # protocol, kind, keys as tc shows them, class


def lines(device: str, bands: Sequence[Band], targets: Sequence[str]) -> list[str]:
    """Returns the `tc -batch` lines that add the filters to the queue; `targets` are the classes of the
    bands.
    """
    return [
        f"filter add dev {device} parent {QUEUE} protocol {protocol} pref {number} {kind} "
        f"{' '.join(_given(key) for key in keys)} classid {to}"
        for number, (protocol, kind, keys, to) in enumerate(filters(bands, targets), 1)
    ]


def filters(bands: Sequence[Band], targets: Sequence[str]) -> list[Filter]:
    """Returns the filters of all bands in their order."""
    return [one for band, to in zip(bands, targets, strict=True) for one in _of(band, to)]


def _of(band: Band, to: str) -> Iterator[Filter]:
    for pcp in band.pcp:
        yield "802.1q", "flower", (f"vlan_prio {pcp}",), to
    for dscp in band.dscp:
        # If the kernel keeps a VLAN tag outside the packet, the filter does not see the protocol; the IP
        # version identifies it.
        v4 = (_match(0x40000000 | dscp << 18, 0xF0FC0000, 0),)
        v6 = (_match(0x60000000 | dscp << 22, 0xFFC00000, 0),)
        for protocol, keys in (("ip", v4), ("ipv6", v6), ("802.1q", v4), ("802.1q", v6)):
            yield protocol, "u32", keys, to
    for port in band.ports:
        for transport in (TCP, UDP):
            # The header must have no options (a length of 5 words), so that the ports are at byte 20.
            head = (_match(0x45000000, 0xFF000000, 0), _match(transport << 16, 0x00FF0000, 8))
            for ports in (_match(port << 16, 0xFFFF0000, 20), _match(port, 0x0000FFFF, 20)):
                for protocol in ("ip", "802.1q"):
                    yield protocol, "u32", (*head, ports), to


def _match(value: int, mask: int, at: int) -> str:
    return f"match {value:08x}/{mask:08x} at {at}"


def _given(key: str) -> str:
    """Converts the keys of a filter in tc's output, for example `match 40b80000/f0fc0000 at 0`, to tc's
    arguments.
    """
    return re.sub(r"match (\w+)/(\w+) at", r"match u32 0x\1 0x\2 at", key)


def entries(device: str, text: str) -> list[Entry]:
    """Parses the filters in the output of `tc filter show dev DEVICE parent HANDLE`, sorted by number. The
    input is text, since tc's JSON of u32 is invalid in iproute2 6.1.
    """
    found: list[Entry] = []
    places = [*_BLOCK.finditer(text)]
    for block, following in itertools.zip_longest(places, places[1:]):
        inside = text[block.end() : following.start() if following else len(text)]
        found.append({
            "filter": block["kind"], "dev": device, "protocol": block["protocol"].lower(),
            "pref": int(block["pref"]), "to": block["to"], "keys": _KEYS.findall(inside),
        })  # fmt: skip
    return sorted(found, key=lambda e: e["pref"])


def mismatches(bands: Sequence[Band], targets: Sequence[str], read: Sequence[Entry]) -> list[Mismatch]:
    """Returns the first filter that is missing or differs from the request, as one mismatch; empty if all
    agree.
    """
    asked = filters(bands, targets)
    there = [(e["protocol"], e["filter"], tuple(sorted(e["keys"])), e["to"]) for e in read if "filter" in e]
    wanted = [(protocol, kind, tuple(sorted(keys)), to) for protocol, kind, keys, to in asked]
    if wanted == there:
        return []
    first = next((i for i, (a, b) in enumerate(zip(wanted, there, strict=False)) if a != b), len(there))
    return [(f"queue filter {first + 1}", _shown(wanted, first), _shown(there, first))]


def _shown(of: Sequence[Filter], place: int) -> str:
    if place >= len(of):
        return "nothing"
    protocol, kind, keys, to = of[place]
    return f"{protocol} {kind} {' '.join(keys)} to {to}"
