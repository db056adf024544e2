"""Detects changes of the network by programs of nodes during a scenario: links set down, other MTUs and
hardware addresses, addresses, routes and neighbours, even if the program restores them.

The kernel announces each change. All changes in a node are left out if the timeline or a client starts,
stops, adds, removes or sets the node or cuts its direct link to another node, or if the timeline runs a
network tool there. Routes and neighbours of nodes with a routing daemon are left out, too. So are the
addresses and routes that software has the task to set (`configures` in its spec).
"""

from __future__ import annotations

import ctypes
import re
import socket
import struct
import sys
from collections import Counter
from collections.abc import Iterator

from contract import events
from contract.events import Applied
from contract.plan import Link, Node
from orchestrator.lab import announcements
from orchestrator.lab.announcements import Places
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.network_changes import DELNEIGH, NEWNEIGH, Change, changes

GROUPS = 0x1 | 0x10 | 0x100  # RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR (linux/rtnetlink.h)
ROUTING = 0x4 | 0x40 | 0x400  # RTMGRP_NEIGH, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE
MOST_SHOWN = 8
REMEDY = "no program of a node may change its network in the run; put changes into the timeline"
LOOK = "see whether traffic takes another way or comes from another address because of them"
OF_LINKS = ("link-down", "link-up")
OF_NODES = ("start", "stop", "kill", "restart", "set", "add", "remove")
_RUNS = r"\b(ip|ifconfig|ifup|ifdown|route|arp|ethtool|bridge|nmcli)\b|\.sh\b"
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
LOW = 0 if sys.byteorder == "little" else 1  # position of the low byte of a 16-bit number
# Neighbour entries change all the time without a program. A program made the change if the message has a
# sender's port (a netlink socket), or if the entry is permanent (`arp -s`). Instructions of classic BPF:
# operation, jump if true, jump if false, operand.
FILTER = (
    (0x30, 0, 0, 4 + LOW), (0x15, 1, 0, NEWNEIGH), (0x15, 0, 4, DELNEIGH),  # the message's kind
    (0x20, 0, 0, 12), (0x15, 0, 2, 0),  # loads the sender's port
    (0x30, 0, 0, 24 + LOW), (0x45, 0, 1, 0x80),  # checks ndm_state for NUD_PERMANENT
    (0x06, 0, 0, 0xFFFFFFFF), (0x06, 0, 0, 0),  # keeps the message, or discards it
)  # fmt: skip


def listen(lab: Lab, places: Places) -> None:
    """Begins to record at the start of the scenario: binds each namespace's socket to its announcements, with
    a filter for neighbours. For nodes with a routing daemon it leaves out routes and neighbours. Earlier
    changes are not recorded.
    """
    routers = {n.netns for n in lab.nodes.values() if any(s.role == "router" for s in n.software)}
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in FILTER))
    program = struct.pack("@HP", len(FILTER), ctypes.addressof(code))  # struct sock_fprog
    for netns, kernel in places.items():
        kernel.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        kernel.bind((0, GROUPS if netns in routers else GROUPS | ROUTING))


def end(lab: Lab, places: Places) -> None:
    """Reads and closes the sockets and warns of changes by programs; the run becomes suspect unless a change
    only added an address or route. Also warns of namespaces whose announcements are incomplete.
    """
    unread: list[str] = []
    found = _changed(lab, places, unread)
    _warn(lab, [one for one in found if not one.adds], "the network of nodes", REMEDY, suspect=True)
    _warn(lab, [one for one in found if one.adds], "addresses or routes of nodes", LOOK, suspect=False)
    announcements.warn_unread(lab, "the network", unread)


def _warn(lab: Lab, found: list[Change], what: str, remedy: str, suspect: bool) -> None:
    if found:
        shown = [f"{one.text}{f' ({n} times)' if n > 1 else ''}" for one, n in Counter(found).items()]
        more = f"; and {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
        text = f"programs changed {what} in the run: {'; '.join(shown[:MOST_SHOWN])}{more}"
        lab.events.warn(Warning("network-changed" if suspect else "network-added", text, remedy, suspect))


def _changed(lab: Lab, places: Places, unread: list[str]) -> list[Change]:
    """Returns the changes made by programs and closes the sockets; adds to `unread` the namespaces whose
    announcements are incomplete.
    """
    own, found = set(_changed_by_lab(lab)), list[Change]()
    nodes = {node.netns: node for node in lab.nodes.values() if node.name not in own}

    def inside(netns: str) -> None:
        for one in announcements.read(places[netns]) if netns in nodes else ():
            if one.kind == announcements.OVERRUN:
                unread.append(netns)
                continue
            found.extend(
                Change(f"nodes.{nodes[netns].name}: {change.text}", change.adds)
                for change in changes(nodes[netns], one, announcements.device)
                if not is_task(nodes[netns], change)
            )

    unread += announcements.in_each(places, inside)
    for kernel in places.values():
        kernel.close()
    return found


def is_task(node: Node, change: Change) -> bool:
    """Returns whether a program of the node has the task to make such a change. A task covers addresses on
    the interface that `configures` in the program's spec names, or all routes of the node.
    """
    cards = {software.spec["configures"] for software in node.software if "configures" in software.spec}
    of_address = tuple(f"{card}: address " for card in cards)
    return bool(cards) and (change.text.startswith(of_address) or "route to " in change.text)


def _changed_by_lab(lab: Lab) -> Iterator[str]:
    """Yields the nodes whose network an event of the timeline or of a client may change, and those on which
    the timeline runs a network tool or a shell script.
    """
    wires = [link for link in (*lab.plan.links, *lab.links.values()) if link.kind == "nodes"]
    for applied in events.read(lab.run_dir):
        yield from _touched(applied, wires)
    for event in lab.plan.events:
        if event.action == "run" and re.search(_RUNS, " ".join(event.args["argv"])):
            yield from event.targets


def _touched(event: Applied, wires: list[Link]) -> Iterator[str]:
    """Yields the targets of an event on whole nodes, and both ends of the direct wires that the event
    affects.
    """
    action, args, targets = event.action, event.args, event.targets
    whole = action in OF_NODES and args.get("software") is None
    yield from targets if whole else ()
    for wire in wires if whole or action in OF_LINKS else ():
        if wire.name in targets or (whole and {wire.a, wire.b} & set(targets)):
            yield from (wire.a, wire.b)
