"""Detects changes of queues inside nodes during a scenario, from the kernel's announcements; a change by tc
that is undone later leaves no other trace.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from contract import events as applied_events
from orchestrator.lab import announcements
from orchestrator.lab.announcements import Places
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import directions
from orchestrator.lab.queue_readback import _meant, _moved

GROUP_TC = 0x8  # RTMGRP_TC (linux/rtnetlink.h)
CHANGES = range(36, 48)  # RTM_NEWQDISC to RTM_DELTFILTER
MOST_SHOWN = 5
REMEDY = "no program of a node may use tc; put changes into the timeline"


def begin(lab: Lab) -> Places:
    """Opens a socket in the namespaces that announcements.open_in selects and begins to record changes of
    queues; returns the sockets by namespace.
    """
    places = announcements.open_in(lab)
    for kernel in places.values():
        kernel.bind((0, GROUP_TC))
    return places


def end(lab: Lab, places: Places) -> None:
    """Reads and closes the sockets and warns of devices whose queues a program changed, even if it restored
    them; changes by vNET or by tc on the timeline do not count. Also warns of namespaces whose announcements
    are incomplete.
    """
    unread: list[str] = []
    found = list(_changed(lab, places, unread))
    if found:
        named = "; ".join(found[:MOST_SHOWN])
        more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        text = f"tc was used in the run, which the proof of links does not know: {named}{more}"
        lab.events.warn(Warning("tc-used", text, REMEDY))
    announcements.warn_unread(lab, "queues", unread)


def _changed(lab: Lab, places: Places, unread: list[str]) -> Iterator[str]:
    """Yields a text for each device whose queues were changed by neither vNET nor the timeline, and closes
    the sockets; adds to `unread` the namespaces whose announcements are incomplete.
    """
    passed, own = _meant(lab), set(_changed_by_lab(lab))
    counts: Counter[tuple[str, str]] = Counter()

    def inside(netns: str) -> None:
        for one in announcements.read(places[netns]) if netns not in passed else ():
            if one.kind == announcements.OVERRUN:
                unread.append(netns)
            elif one.kind in CHANGES:
                device = announcements.device(struct.unpack_from("=i", one.body, 4)[0])  # struct tcmsg
                counts[netns, device] += 1

    unread += announcements.in_each(places, inside)
    for kernel in places.values():
        kernel.close()
    for (netns, device), count in sorted(counts.items()):
        if (netns, device) not in own:
            yield f"{netns}.{device}: {count} changes"


def _changed_by_lab(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yields namespace and device of the queues that the timeline, a client, a trace or a program changes."""
    trade, events = _moved(lab), set(_impaired(lab))
    for name, way, d in directions(list(lab.links.values())):
        if name in events or d.trace is not None or (name, way) in trade:
            yield from ((d.netns, device) for device in (d.carrier, d.device))


def _impaired(lab: Lab) -> Iterator[str]:
    """Yields the targets of all events of the run so far."""
    for event in applied_events.read(lab.run_dir):
        yield from event.targets
