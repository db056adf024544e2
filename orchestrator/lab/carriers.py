"""Which interfaces of light nodes pass frames on: both ends up, and the kernel done with it.

An interface that got its carrier drops what it is given until the kernel's link watch has started its queue.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping, Sequence

from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.rtnetlink import (
    DUMP,
    IFLA_IFNAME,
    IFLA_OPERSTATE,
    NLMSG_DONE,
    NLMSG_ERROR,
    RTM_GETLINK,
    attributes,
)

OPERSTATE_UP = 6  # RFC 2863


def not_passing(wanted: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Of the interfaces asked for, by namespace, those that do not pass frames yet."""
    found: dict[str, list[str]] = {}
    failed: list[OSError] = []

    def look() -> None:  # a thread of its own: it stays in the last namespace that it was in
        try:
            for netns, names in wanted.items():
                up = _up_in(netns)
                if waiting := [name for name in names if name not in up]:
                    found[netns] = waiting
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    if failed:
        raise LabError(f"interfaces of nodes: {failed[0]}")
    return found


def _up_in(netns: str) -> set[str]:
    enter(netns)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
        asked.send(struct.pack("=IHHII", 32, RTM_GETLINK, DUMP, 1, 0) + bytes(16))
        return _names(asked)


def _names(asked: socket.socket) -> set[str]:
    up: set[str] = set()
    while True:
        data = asked.recv(65536)
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind in (NLMSG_DONE, NLMSG_ERROR):
                return up
            found = attributes(data[32:length])
            if found.get(IFLA_OPERSTATE, b"\0")[0] == OPERSTATE_UP:
                up.add(found[IFLA_IFNAME].rstrip(b"\0").decode())
            data = data[(length + 3) & ~3 :]
