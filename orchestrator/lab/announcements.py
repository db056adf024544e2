"""Opens sockets in nodes' network namespaces that record what the kernel announces about the network
(rtnetlink).

They are read only after the scenario, so that reading disturbs nothing. Announcements beyond a socket's
buffer are lost; a note names the nodes where that happened.
"""

from __future__ import annotations

import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from orchestrator.lab.entering import enter
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.rtnetlink import HEADER

MOST = 256  # most nodes that are watched, with a socket each
MOST_SHOWN = 5
OVERRUN = 4  # NLMSG_OVERRUN (linux/netlink.h): messages were lost
UNTOLD = "whether a program changed them there is not known; see docs/checks.md"
Places = dict[str, socket.socket]  # sockets by namespace


@dataclass(frozen=True, slots=True)
class Announcement:
    """A message of the kernel. sender: the netlink port of the program that requested the change; 0 is the
    kernel itself, or a program that used an ioctl.
    """

    kind: int
    flags: int
    sender: int
    body: bytes


def open_in(lab: Lab) -> Places:
    """Opens a socket in each of the first MOST light nodes of this host that run programs; skips namespaces
    that do not exist any more. Opens none for the driver `fake`.
    """
    names = [] if lab.driver.name == "fake" else list(_namespaces(lab))[:MOST]
    found: Places = {}

    def inside(netns: str) -> None:
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        kernel.setblocking(False)
        found[netns] = kernel

    warn_unread(lab, "queues and networks", in_each(names, inside))
    return found


def read(kernel: socket.socket) -> Iterator[Announcement]:
    """Yields the announcements that the socket has recorded so far, and one of kind OVERRUN if some were
    lost. Raises OSError if the socket cannot be read.
    """
    while True:
        try:
            data = kernel.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            yield Announcement(OVERRUN, 0, 0, b"")
            continue
        yield from messages(data)


def messages(data: bytes) -> Iterator[Announcement]:
    """Yields the messages in the data that one read of a socket returned."""
    while len(data) >= HEADER:
        length, kind, flags, _, sender = struct.unpack_from("=IHHII", data)
        yield Announcement(kind, flags, sender, data[HEADER:length])
        data = data[(max(length, HEADER) + 3) & ~3 :]


def device(index: int) -> str:
    """Returns the name of a device in the thread's namespace, or `device INDEX` if it has none of that
    index.
    """
    try:
        return socket.if_indextoname(index)
    except OSError:
        return f"device {index}"


def in_each(places: Iterable[str], work: Callable[[str], None]) -> list[str]:
    """Calls `work` with the name of each namespace, in a thread that is inside the namespace; skips
    namespaces that do not exist any more. Returns the namespaces in which `work` failed, each with the
    reason.
    """
    failed: list[str] = []

    # In a thread of its own, because the thread stays in the last namespace that it entered.
    def inside() -> None:
        for netns in places:
            try:
                enter(netns)
            except OSError:
                continue
            try:
                work(netns)
            except (OSError, ValueError, IndexError, struct.error) as error:
                failed.append(f"{netns} ({error})")

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    return failed


def warn_unread(lab: Lab, what: str, places: Iterable[str]) -> None:
    """Warns of places in which changes of `what` may be missing from the findings."""
    named = sorted(set(places))
    if named:
        more = f" and {len(named) - MOST_SHOWN} more" if len(named) > MOST_SHOWN else ""
        shown = f"{', '.join(named[:MOST_SHOWN])}{more}"
        text = f"the kernel's announcements about {what} are incomplete in {shown}"
        lab.events.warn(Warning("unread", text, UNTOLD, suspect=False))


def _namespaces(lab: Lab) -> Iterator[str]:
    for node in lab.nodes.values():
        if node.vm is None and not node.host and any(s.process is not None for s in node.software):
            yield node.netns
