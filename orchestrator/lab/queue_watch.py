"""Detects changes of queues inside nodes during a scenario, by the kernel's announcements; a change by tc
that is reverted leaves no other trace.

A socket in each node with a program of the user receives the announcements. It is read only after the
scenario, to disturb nothing.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator

from orchestrator.lab.entering import enter
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import directions
from orchestrator.lab.queue_readback import _meant, _moved

GROUP_TC = 0x8  # RTMGRP_TC (linux/rtnetlink.h)
CHANGES = range(36, 48)  # RTM_NEWQDISC to RTM_DELTFILTER
MOST = 256  # most nodes that are watched, with a socket each
MOST_SHOWN = 5
REMEDY = "no program of a node may use tc; put changes into the timeline"
Places = dict[str, socket.socket]  # sockets by namespace


def begin(lab: Lab) -> Places:
    """Opens the sockets in up to MOST nodes that run programs; skips namespaces that are gone."""
    names = [] if lab.driver.name == "fake" else list(_namespaces(lab))[:MOST]
    found: Places = {}

    def inside() -> None:  # a thread of its own: it stays in the last namespace that it was in
        for netns in names:
            try:
                enter(netns)
                kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            except OSError:
                continue
            kernel.bind((0, GROUP_TC))
            kernel.setblocking(False)
            found[netns] = kernel

    _apart(inside)
    return found


def end(lab: Lab, places: Places) -> None:
    """Reads the sockets and warns of devices whose queues a program changed, even if it restored them."""
    found = list(_changed(lab, places))
    if found:
        named = "; ".join(found[:MOST_SHOWN])
        more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        text = f"tc was used in the run, which the proof of links does not know: {named}{more}"
        lab.events.warn(Warning("tc-used", text, REMEDY))


def _changed(lab: Lab, places: Places) -> Iterator[str]:
    passed, own = _meant(lab), set(_changed_by_lab(lab))
    counts: Counter[tuple[str, str]] = Counter()

    def inside() -> None:
        for netns, kernel in places.items():
            try:
                enter(netns)
            except OSError:
                continue
            counts.update((netns, device) for device in _announced(kernel))

    _apart(inside)
    for kernel in places.values():
        kernel.close()
    for (netns, device), count in sorted(counts.items()):
        if netns not in passed and (netns, device) not in own:
            yield f"{netns}.{device}: {count} changes"


def _namespaces(lab: Lab) -> Iterator[str]:
    for node in lab.nodes.values():
        if node.vm is None and not node.host and any(s.process is not None for s in node.software):
            yield node.netns


def _changed_by_lab(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yields namespace and device of the queues that the timeline, a client, a trace or a gateway changes."""
    trade, events = _moved(lab), set(_impaired(lab))
    for name, way, d in directions(list(lab.links.values())):
        if name in events or d.trace is not None or (name, way) in trade:
            yield from ((d.netns, device) for device in (d.carrier, d.device))


def _impaired(lab: Lab) -> Iterator[str]:
    path = lab.run_dir / "raw" / "events.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        event = json.loads(line)
        yield from event["targets"]


def _announced(kernel: socket.socket) -> Iterator[str]:
    """Yields the device of each announced change; announcements beyond the kernel's buffer are lost."""
    while True:
        try:
            data = kernel.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:  # ENOBUFS: some were lost
            continue
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind in CHANGES:
                yield _name(struct.unpack_from("=i", data, 20)[0])
            data = data[(max(length, 16) + 3) & ~3 :]


def _name(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return f"device {index}"


def _apart(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
