"""What linux/rtnetlink.h and linux/if_link.h say of links, as far as it is asked for here."""

from __future__ import annotations

import struct

RTM_GETLINK = 18
REQUEST, DUMP = 0x1, 0x301  # NLM_F_REQUEST, and with NLM_F_DUMP
NLMSG_ERROR, NLMSG_DONE = 2, 3
IFLA_IFNAME, IFLA_OPERSTATE, IFLA_IFALIAS = 3, 16, 20


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes behind a message's head, by type."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(max(length, 4) + 3) & ~3 :]
    return found
