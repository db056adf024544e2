"""Finds interfaces that do not forward frames yet, because an end is down or the kernel has not processed the
carrier.

An interface that got its carrier drops frames, and a bridge does not forward through it, until the kernel's
link watch has processed the change. The watch may need a second for a hundred interfaces, so minutes for
10,000. A request for a single interface makes the kernel process its change at once (rtnl_getlink in
net/core/rtnetlink.c, since Linux 6.8), so this module requests the interfaces one by one.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping, Sequence

from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.rtnetlink import (
    IFLA_EXT_MASK,
    IFLA_IFNAME,
    IFLA_OPERSTATE,
    NLMSG_ERROR,
    REQUEST,
    RTM_GETLINK,
    SKIP_STATISTICS,
    attribute,
    attributes,
)

OPERSTATE_UP = 6  # RFC 2863


def not_passing(wanted: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns the interfaces of `wanted` that do not forward frames yet, by namespace; omits namespaces
    without such interfaces. Raises LabError if a namespace cannot be entered or the kernel does not answer.
    """
    found: dict[str, list[str]] = {}
    failed: list[OSError] = []

    # The function runs in a separate thread, because a thread stays in the last namespace that it entered.
    def look() -> None:
        try:
            for netns, names in wanted.items():
                enter(netns)
                if waiting := _waiting(names):
                    found[netns] = waiting
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    if failed:
        raise LabError(f"interfaces of nodes: {failed[0]}")
    return found


def hasten(netns: str, names: Sequence[str]) -> None:
    """Makes the kernel process the carrier changes of these interfaces now, with one request for each."""
    not_passing({netns: names})


def _waiting(names: Sequence[str]) -> list[str]:
    """Returns the interfaces that are not up in the thread's namespace; a missing interface is not up."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        return [name for name in names if _state(kernel, name) != OPERSTATE_UP]


def _state(kernel: socket.socket, name: str) -> int | None:
    asked = attribute(IFLA_EXT_MASK, struct.pack("=I", SKIP_STATISTICS))
    asked += attribute(IFLA_IFNAME, name.encode() + b"\0")
    body = bytes(16) + asked  # struct ifinfomsg, zero except for the family
    kernel.send(struct.pack("=IHHII", 16 + len(body), RTM_GETLINK, REQUEST, 1, 0) + body)
    answer = kernel.recv(65536)
    if struct.unpack_from("=IH", answer)[1] == NLMSG_ERROR:
        return None
    return attributes(answer[32:]).get(IFLA_OPERSTATE, b"\0")[0]
