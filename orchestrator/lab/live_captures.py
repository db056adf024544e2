"""Starts and stops captures that clients request in a running lab; imported with the first request."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from capture import tcpdump
from contract.plan import Capture
from orchestrator.lab.captures import await_start
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab, Running
from orchestrator.lab.timeline import record_live
from orchestrator.plan.capture_point import capture_point

AT = re.compile(r"(node|segment|link) ([a-z][a-z0-9-]{0,62})")
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
SNAPLEN = 1600
LARGEST = 262_144
MOST_BYTES = 1 << 30  # size at which a live capture ends, so that a forgotten one does not fill the disk
MOST = 16  # largest number of live captures at a time


def capture(lab: Lab, request: Message) -> dict[str, Any]:
    """Carries out a request: {action: on, at, name?, snaplen?, filter?} starts a capture, {action: off, name}
    stops one. Returns name, point and path, with the packet counts after a stop.

    Raises LabError for an invalid request, a filter that tcpdump refuses, a name that is in use, more than
    MOST live captures, or a request to stop a capture that no client started.
    """
    action, by = request.get("action"), request.get("by")
    if action == "on":
        point = _point(lab, request)
        _begin(lab, point)
        record_live(lab, "capture-on", [point.at], {"name": point.name, "filter": point.filter}, by)
        return {"name": point.name, "at": point.at, "path": _path(point.name)}
    if action == "off":
        name = str(request.get("name"))
        running = lab.captures.get(name)
        if running is None or not running.live:
            there = ", ".join(n for n, one in lab.captures.items() if one.live) or "none"
            raise LabError(f"capture {name}: no live capture of this name runs; running: {there}")
        counts = stop(lab, name)
        record_live(lab, "capture-off", [running.point.at], {"name": name, **counts}, by)
        return {"name": name, "at": running.point.at, "path": _path(name), **counts}
    raise LabError(f"capture: action: {action}: not one of on, off")


def stop(lab: Lab, name: str) -> dict[str, int]:
    """Ends a capture and returns its packet counts."""
    return lab.captures.pop(name).process.stop()


def stop_live(lab: Lab, nodes: list[str] | None = None) -> None:
    """Ends captures that clients started: all of them, or only those at these nodes and at the
    nodes' links.
    """
    for name, one in list(lab.captures.items()):
        if one.live and (nodes is None or _belongs(lab, one.point.at, nodes)):
            stop(lab, name)


def _belongs(lab: Lab, at: str, nodes: list[str]) -> bool:
    kind, target = at.split(" ")
    link = lab.links.get(target) if kind == "link" else None
    return (kind == "node" and target in nodes) or (link is not None and bool({link.a, link.b} & {*nodes}))


def _begin(lab: Lab, point: Capture) -> None:
    died: list[str] = []

    def ended(why: str) -> None:
        died.append(why)
        if lab.captures.pop(point.name, None) is not None:
            remedy = "turn it on again; what it wrote is kept"
            lab.events.warn(Warning("capture", f"{why}", remedy, suspect=False))

    file = _file(lab, point.name)
    process = lab.driver.capture(point, file, ended)
    try:
        await_start(lab.loop, point.name, process, died)
    except BaseException:
        file.unlink(missing_ok=True)  # the capture's name is free again
        raise
    lab.captures[point.name] = Running(point, process, file, live=True)
    _bound(lab, point.name)


def _bound(lab: Lab, name: str) -> None:
    """Checks the size of a capture file once a second; ends the capture with a warning when it exceeds
    MOST_BYTES.
    """
    mine = lab.captures[name]

    def look() -> None:
        if lab.captures.get(name) is not mine:
            timer.cancelled = True
        elif mine.file.stat().st_size > MOST_BYTES:
            timer.cancelled = True
            stop(lab, name)
            text = f"captures.{name}: ended at {MOST_BYTES >> 20} MiB"
            lab.events.warn(Warning("capture", text, "give it a filter or a smaller snaplen", suspect=False))

    timer = lab.loop.every(SECOND, look)


def _point(lab: Lab, request: Message) -> Capture:
    at = str(request.get("at"))
    if (found := AT.fullmatch(at)) is None:
        raise LabError(f'capture: at: {at}: write "node NAME", "segment NAME" or "link NAME"')
    kind, target = found.groups()
    known = {"node": set(lab.nodes), "link": set(lab.links), "segment": {s.name for s in lab.plan.segments}}
    if target not in known[kind]:
        raise LabError(f"capture: at: {at}: the lab has no such {kind}; `vnet inspect` lists all")
    if kind == "node" and not lab.nodes[target].interfaces:
        raise LabError(f"capture: at: {at}: has no interface")
    if sum(one.live for one in lab.captures.values()) >= MOST:
        raise LabError(f"capture: {MOST} run already; turn one off")
    snaplen, wanted = request.get("snaplen", SNAPLEN), str(request.get("filter") or "")
    if not isinstance(snaplen, int) or not 60 <= snaplen <= LARGEST:
        raise LabError(f"capture: snaplen: {snaplen}: give 60 to {LARGEST} bytes")
    if "\n" in wanted or "\r" in wanted or wanted.startswith("-"):
        raise LabError("capture: filter: one line, a pcap filter expression")
    if wanted and (why := tcpdump.fault(wanted)) is not None:
        raise LabError(f'capture: filter: "{wanted}": tcpdump refuses it: {why}; see pcap-filter(7)')
    return capture_point(
        lab.plan.lab, _name(lab, request.get("name"), f"live-{kind}-{target}"), at, lab.plan.segments,
        {name: node.interfaces for name, node in lab.nodes.items()}, lab.links.values(),
        snaplen=snaplen, filter=wanted, keep=True,
    )  # fmt: skip


def _name(lab: Lab, given: Any, proposed: str) -> str:
    """Returns the requested name, or the first unused one, so that a capture never overwrites an earlier
    file. Raises LabError if the requested name is in use or invalid.
    """
    if given is not None:
        if NAME.fullmatch(str(given)) is None:
            raise LabError(f"capture: name: {given}: use a-z, 0-9 and -, first a letter")
        if _taken(lab, str(given)):
            raise LabError(f"capture: name: {given}: is one already; choose another")
        return str(given)
    number, name = 1, proposed
    while _taken(lab, name):
        number += 1
        name = f"{proposed}-{number}"
    return name


def _taken(lab: Lab, name: str) -> bool:
    return any(point.name == name for point in lab.plan.captures) or _file(lab, name).exists()


def _file(lab: Lab, name: str) -> Path:
    return lab.run_dir / _path(name)


def _path(name: str) -> str:
    return f"pcap/{name}.pcap"
