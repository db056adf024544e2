"""Encodes and decodes netlink attributes; constants of linux/rtnetlink.h and linux/if_link.h."""

from __future__ import annotations

import struct

RTM_GETLINK = 18
REQUEST = 0x1  # NLM_F_REQUEST
NLMSG_ERROR = 2
IFLA_IFNAME, IFLA_OPERSTATE, IFLA_IFALIAS, IFLA_EXT_MASK = 3, 16, 20, 29
SKIP_STATISTICS = 0x8  # RTEXT_FILTER_SKIP_STATS


def attribute(kind: int, value: bytes) -> bytes:
    """Encodes one attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """Decodes the attributes after a message's header, by type."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(max(length, 4) + 3) & ~3 :]
    return found
