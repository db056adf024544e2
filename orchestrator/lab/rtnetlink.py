"""Encodes and decodes netlink attributes and lists qdiscs; the constants are those of linux/netlink.h,
linux/rtnetlink.h and linux/if_link.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

RTM_GETLINK, RTM_NEWQDISC, RTM_GETQDISC = 18, 36, 38
REQUEST, ACK, DUMP = 0x1, 0x4, 0x300  # NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP
NLMSG_ERROR, NLMSG_DONE = 2, 3
HEADER = 16  # bytes of struct nlmsghdr
TCMSG = 20  # bytes of struct tcmsg, with which the messages about queues begin
TCA_KIND, TCA_OPTIONS = 1, 2
IFLA_IFNAME, IFLA_OPERSTATE, IFLA_IFALIAS, IFLA_EXT_MASK = 3, 16, 20, 29
SKIP_STATISTICS = 0x8  # RTEXT_FILTER_SKIP_STATS


def attribute(kind: int, value: bytes) -> bytes:
    """Encodes one attribute, with its value padded to a multiple of four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """Decodes netlink attributes (without the message's header) into a dictionary from type to value; of
    several with the same type, the last counts.
    """
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(max(length, 4) + 3) & ~3 :]
    return found


def qdiscs(kernel: socket.socket) -> Iterator[bytes]:
    """Requests all qdiscs in the socket's namespace; returns an iterator over `struct tcmsg` and attributes
    of each, which raises the errors of `answers`.
    """
    kernel.send(struct.pack("=IHHII", HEADER + TCMSG, RTM_GETQDISC, REQUEST | DUMP, 1, 0) + bytes(TCMSG))
    return answers(kernel)


def answers(kernel: socket.socket) -> Iterator[bytes]:
    """Yields the bodies of a dump's messages, to its end. Raises OSError if the kernel ends the dump with an
    error, or if a message's length is impossible.
    """
    while True:
        data = kernel.recv(1 << 18)
        while data:
            length, kind = struct.unpack_from("=IH", data) if len(data) >= HEADER else (0, 0)
            if not HEADER <= length <= len(data):
                raise OSError(errno.EBADMSG, f"netlink: a message of {length} bytes in {len(data)}")
            if kind in (NLMSG_DONE, NLMSG_ERROR):
                # The body of both kinds of message begins with an error number, negative or 0 (struct
                # nlmsgerr; net/netlink/af_netlink.c).
                number = -struct.unpack_from("=i", data[:length].ljust(HEADER + 4, b"\0"), HEADER)[0]
                if number:
                    raise OSError(number, os.strerror(number))
                return
            yield data[HEADER:length]
            data = data[(length + 3) & ~3 :]
