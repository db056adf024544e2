"""Reads queues back and compares them with the expected ones: all of them at the end of a run, and some
before an event changes them.

A program of a node may be root there and call tc, which the proof before the run cannot show. Devices of
links are compared with the impairments that apply now. Other devices of a light node must have one of the
kernel's own queues, unless the timeline runs tc on the node.
"""

from __future__ import annotations

import fcntl
import re
import socket
import struct
import threading
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.plan import Node
from orchestrator.lab import readback
from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import directions
from orchestrator.lab.rtnetlink import TCA_KIND, TCA_OPTIONS, TCMSG, attributes, qdiscs
from orchestrator.queueing import QUEUE_KINDS

SIOCGIFNAME = 0x8910  # linux/sockios.h
_TC = re.compile(r"\btc\b")
MOVES = "least_bps"  # key in the spec of a program that changes the rates of its link's classes
# Queues that the kernel itself gives to devices (tun has pfifo_fast), and hooks, which hold no packets. Kinds
# of queue with `by_itself` are added.
DEFAULTS = ("noqueue", "pfifo_fast", "mq", "clsact", "ingress")
DEFAULT = Path("/proc/sys/net/core/default_qdisc")
Queue = tuple[str, int, int, bytes]  # kind, handle, parent, options as the kernel reports them
Queues = dict[tuple[str, str], tuple[Queue, ...]]  # by namespace and device


@dataclass(frozen=True, slots=True)
class Part:
    """The nodes and links of a lab whose queues are read."""

    nodes: Container[str]
    links: Container[str]


class _All:
    """A container that contains every name."""

    def __contains__(self, _: object) -> bool:
        return True


WHOLE = Part(_All(), _All())


def look(lab: Lab, part: Part = WHOLE) -> Queues:
    """Returns the queues of all devices in the part's light nodes' namespaces, except devices of links; empty
    for the fake driver.

    Skips namespaces that cannot be entered, and under User-Mode Linux those in which only the agent ran.
    Raises LabError if the kernel does not list a namespace's queues.
    """
    found: Queues = {}
    failed: list[str] = []
    sealed = lab.manifest.kernel.get("kind") == "uml"
    places = [
        n.netns for n in lab.nodes.values()
        if n.vm is None and n.name in part.nodes and not (sealed and _agent_only(lab, n))
    ]  # fmt: skip
    known = {(d.netns, device) for d in _ways(lab) for device in (d.carrier, d.device)}

    # The function runs in a separate thread, because a thread stays in the last namespace that it entered.
    def inside() -> None:
        for netns in places:
            try:
                enter(netns)
            except OSError:
                continue
            try:
                there = _queues()
            except OSError as error:
                failed.append(f"{netns}: its queues cannot be read: {error.strerror}")
                continue
            found.update({(netns, device): q for device, q in there.items() if (netns, device) not in known})

    if lab.driver.name != "fake" and places:
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
    if failed:
        raise LabError("; ".join(failed))
    return found


def changed(lab: Lab, part: Part = WHOLE) -> list[readback.Difference]:
    """Returns the differences between the part's queues and the expected ones. Left out are nodes on which
    the timeline runs tc, and directions with a trace or with classes that a program changes.
    """
    meant, defaults = _meant(lab), {*DEFAULTS, *_by_itself(), _default()}
    found = [
        readback.Difference(f"{netns}.{device}", "nothing", _said(queues))
        for (netns, device), queues in look(lab, part).items()
        if netns not in meant and not {kind for kind, *_ in queues} <= defaults
    ]
    moved = _moved(lab)
    return found + [one for at, one in _links(lab, meant, part.links) if at not in moved]


def _links(
    lab: Lab, meant: set[str], names: Container[str]
) -> Iterator[tuple[tuple[str, str], readback.Difference]]:
    """Yields the differences of links' devices from the present impairments. Leaves out directions with a
    trace, which replay.py reads back, and devices that do not exist any more.
    """
    entries: dict[str, list[dict[str, Any]]] = {}
    for name, way, d in directions([link for link in lab.links.values() if link.name in names]):
        asked = lab.impairments[name, way]
        if d.trace is not None or d.netns in meant or not (asked.present or d.netns in entries):
            continue
        if d.netns not in entries:
            entries[d.netns] = lab.driver.qdiscs(d.netns)
        there = readback.of_host(entries[d.netns], d.host)
        if any(entry.get("dev") == d.carrier for entry in there):
            for one in readback.impairment(f"links.{name}.{way}", asked, there, d.carrier):
                yield (name, way), one


def _agent_only(lab: Lab, node: Node) -> bool:
    """Returns whether only the agent has run on the node: no program, container image or command of
    the user.
    """
    return not node.image and node.name not in lab.entered and all(s.process is None for s in node.software)


def _by_itself() -> set[str]:
    return {queue_kind.qdisc for queue_kind in QUEUE_KINDS.values() if queue_kind.by_itself}


def _default() -> str:
    """Returns the queue that this kernel gives to new devices; empty if it cannot be read."""
    try:
        return DEFAULT.read_text().strip()
    except OSError:
        return ""


def _meant(lab: Lab) -> set[str]:
    """Returns the namespaces of nodes on which the topology's timeline runs tc in a `run` event."""
    runs = (event for event in lab.plan.events if event.action == "run")
    names = {name for event in runs if _TC.search(" ".join(event.args["argv"])) for name in event.targets}
    return {node.netns for node in lab.nodes.values() if node.name in names}


def _moved(lab: Lab) -> set[tuple[str, str]]:
    """Returns the directions whose classes a program changes as part of its function, such as a program that
    grants reservations.
    """
    shares = [
        (node.netns, software.spec.get("link"))
        for node in lab.nodes.values() for software in node.software if MOVES in software.spec
    ]  # fmt: skip
    return {(name, way) for name, way, d in directions(list(lab.links.values())) if (d.netns, name) in shares}


def _ways(lab: Lab) -> Iterable[Any]:
    return (d for _, _, d in directions(list(lab.links.values())))


def _said(queues: tuple[Queue, ...]) -> str:
    """Returns the kinds of queues as text; `nothing` if there are none."""
    return ", ".join(kind for kind, *_ in queues) or "nothing"


def _queues() -> dict[str, tuple[Queue, ...]]:
    """Returns the queues in the thread's namespace, by device, without devices that were removed meanwhile
    and options that contain counters.
    """
    found: dict[str, list[Queue]] = {}
    counting = {queue_kind.qdisc for queue_kind in QUEUE_KINDS.values() if queue_kind.counts}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        for message in qdiscs(kernel):
            index, handle, parent = struct.unpack_from("=iII", message, 4)
            about = attributes(message[TCMSG:])
            kind = about.get(TCA_KIND, b"\0").rstrip(b"\0").decode()
            options = b"" if kind in counting else about.get(TCA_OPTIONS, b"")
            try:
                device = _name(kernel, index)
            except OSError:  # a program of the node has removed the device meanwhile
                continue
            found.setdefault(device, []).append((kind, handle, parent, options))
    return {device: tuple(sorted(queues)) for device, queues in found.items()}


def _name(kernel: socket.socket, index: int) -> str:
    """Returns the name of a device by ioctl on an open socket, because socket.if_indextoname opens and closes
    one each time.
    """
    wanted = struct.pack("=16si20x", b"", index)  # struct ifreq
    return fcntl.ioctl(kernel.fileno(), SIOCGIFNAME, wanted)[:16].rstrip(b"\0").decode()
