"""Carries out the requests of the control socket: one function per operation, and tables of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.codec import build
from contract.plan import Link, Node, Step
from orchestrator import queueing
from orchestrator.lab import change, files, links, operations, power
from orchestrator.lab.driver import Snapshooter
from orchestrator.lab.errors import Interrupted, LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab, Running
from orchestrator.lab.probes import directions
from orchestrator.lab.timeline import record_live

BY_HAND = "a change by hand"
Operation = Callable[[Lab, Message], dict[str, Any]]


def status(lab: Lab, _: Message) -> dict[str, Any]:
    """Returns the lab's state: phase, driver, kernel, numbers of nodes and links, warnings, connected clients
    and groups.
    """
    return {
        "lab": lab.plan.lab, "ready": lab.ready, "phase": lab.events.phase_name, "driver": lab.driver.name,
        "run_dir": str(lab.run_dir), "nodes": len(lab.nodes), "links": len(lab.links),
        "kernel": lab.manifest.kernel, "state": lab.manifest.state,
        "warnings": [dataclasses.asdict(w) for w in lab.events.warnings], "connected": lab.connected[0],
        "serving": lab.serving,
        "groups": {n.name: n.group for n in lab.nodes.values()},
    }  # fmt: skip


def inspect(lab: Lab, _: Message) -> dict[str, Any]:
    """Returns the lab's nodes (state, addresses, programs, limits), links with requested and read-back
    impairments, segments and captures.
    """
    software = lab.driver.call(operations.Software())["nodes"]
    nodes = {
        n.name: {
            "state": lab.node_states.get(n.name), "group": n.group, "hostname": n.hostname, "netns": n.netns,
            "kind": n.kind, "roles": sorted({s.role for s in n.software}),
            "directory": str(lab.state.directory / "nodes" / n.name) if n.kind == "light" else None,
            "pid": lab.pids.get(n.name), "limits": lab.manifest.limits.get(n.name, {}),
            "interfaces": [dataclasses.asdict(i) for i in n.interfaces],
            "software": dict(software.get(n.name, {})) | {
                s.name: {"state": "agent", "endpoint": s.session.endpoint}
                for s in n.software if s.session is not None and s.process is None
            },
        }
        for n in lab.nodes.values()
    }  # fmt: skip
    return {
        "nodes": nodes,
        "links": _links(lab),
        "segments": [dataclasses.asdict(s) for s in lab.plan.segments],
        "captures": {name: _capture(one) for name, one in lab.captures.items()},
    }


def _links(lab: Lab) -> dict[str, Any]:
    """Returns the links by name, with the requested and the read-back impairment of each direction (None
    without one).
    """
    ways = directions(list(lab.links.values()))
    read = {netns: lab.driver.qdiscs(netns) for netns in dict.fromkeys(d.netns for _, _, d in ways)}
    found: dict[str, Any] = {}
    for name, side, d in ways:
        link = lab.link(name)
        entry = found.setdefault(
            name, {"a": link.a, "b": link.b, "kind": link.kind, "down": name in lab.down}
        )
        requested = lab.impairments[name, side]
        now = queueing.found(read[d.netns], d.carrier, requested)
        entry[side] = {
            "device": d.device, "netns": d.netns, "requested": dataclasses.asdict(requested),
            "read": dataclasses.asdict(now) if now.present else None,
        }  # fmt: skip
    return found


def software(lab: Lab, request: Message) -> dict[str, Any]:
    """Starts, stops, restarts, kills, freezes or thaws the requested software of nodes and records the
    change; raises LabError if there is no such software, or if an action fails.
    """
    action = _one_of(request, "action", ("start", "stop", "restart", "kill", "freeze", "thaw"))
    nodes = _names(request)
    name = request.get("software")
    items = power.chosen(lab, nodes, name)
    if not items:
        raise LabError(f"software: nothing to {action} on {', '.join(nodes)}")
    if action in ("freeze", "thaw"):
        power.freeze(lab, nodes, name, action == "freeze")
    elif action != "start":
        power.stop(lab, items, "SIGKILL" if action == "kill" else None)
    if action in ("start", "restart"):
        power.insist(power.start(lab, items))
    record_live(lab, action, nodes, {"software": name}, request.get("by"))
    return {"software": [f"{n}.{s.name}" for n, s in items]}


def fetch(lab: Lab, request: Message) -> dict[str, Any]:
    """Returns a part of a file of the run directory in its present state, such as a log, a counter file or a
    capture.
    """
    return files.part(lab.run_dir, request.get("path"), request.get("offset", 0), request.get("length"))


def node(lab: Lab, request: Message) -> dict[str, Any]:
    """Starts, stops or restarts whole nodes and records the change; returns their states."""
    action = _one_of(request, "action", ("start", "stop", "restart"))
    names = _names(request)
    for name in names:
        lab.node(name)
    lab.before_change(action, names, BY_HAND)
    power.act(lab, action, names, None)
    record_live(lab, action, names, {"software": None}, request.get("by"))
    return {"nodes": {name: lab.node_states[name] for name in names}}


def settings(lab: Lab, request: Message) -> dict[str, Any]:
    """Changes settings of running nodes and records the change; returns the values read back."""
    wanted = {k: v for k, v in request.items() if k not in ("id", "op", "nodes", "by")}
    names = _names(request)
    lab.before_change("set", names, BY_HAND)
    read = change.settings(lab, names, wanted)
    record_live(lab, "set", names, {k: v for k, v in wanted.items() if v is not None}, request.get("by"))
    return {"nodes": read}


def link(lab: Lab, request: Message) -> dict[str, Any]:
    """Changes fields of a link's impairment (`forward`, `reverse`) and sets the link down or up if `down` or
    `up` is true; records each change; returns the new values. Raises LabError if only one direction of a
    half-duplex link is to change.
    """
    name = str(request.get("link"))
    if lab.link(name).half_duplex and bool(request.get("forward")) != bool(request.get("reverse")):
        raise LabError(f"link {name}: half duplex: one transmitter for both directions; change both")
    lab.before_change("impair", [name], BY_HAND)
    read = {
        side: dataclasses.asdict(links.change(lab, name, side, request[side]))
        for side in ("forward", "reverse") if request.get(side)
    }  # fmt: skip
    if read:
        record_live(lab, "impair", [name], read, request.get("by"))
    for word in ("down", "up"):
        if request.get(word):
            links.set_up(lab, [name], word == "up")
            record_live(lab, f"link-{word}", [name], {}, request.get("by"))
    return {"link": name, "down": name in lab.down, **read}


def add(lab: Lab, request: Message) -> dict[str, Any]:
    """Adds a node with its links, carries out its steps and records the change; returns its name and pid."""
    wanted = build(Node, request.get("node"))
    steps = build(tuple[Step, ...], request.get("steps", []))
    change.add(lab, wanted, steps, build(tuple[Link, ...], request.get("links", [])))
    record_live(lab, "add", [wanted.name], {"group": wanted.group}, request.get("by"))
    return {"node": wanted.name, "pid": lab.pids.get(wanted.name)}


def remove(lab: Lab, request: Message) -> dict[str, Any]:
    """Ends the live captures of nodes, removes the nodes and records the change."""
    names = _names(request)
    for name in names:
        lab.node(name)
    _end_captures(lab, names)
    change.remove(lab, names)
    record_live(lab, "remove", names, {}, request.get("by"))
    return {"removed": names}


def capture(lab: Lab, request: Message) -> dict[str, Any]:
    """Starts or stops a live capture, with orchestrator.lab.live_captures."""
    from orchestrator.lab import live_captures  # imported here, because most labs have no live captures

    return live_captures.capture(lab, request)


def _end_captures(lab: Lab, names: list[str]) -> None:
    if any(one.live for one in lab.captures.values()):
        from orchestrator.lab import live_captures

        live_captures.stop_live(lab, names)


def _capture(one: Running) -> dict[str, Any]:
    size = one.file.stat().st_size if one.file.exists() else 0
    path = str(Path("pcap") / one.file.name)
    return {"at": one.point.at, "live": one.live, "filter": one.point.filter, "path": path, "bytes": size}


def snapshot(lab: Lab, request: Message) -> dict[str, Any]:
    """Saves the state of virtual machines under `name`, or restores it (operation `revert`), and records
    that. Raises LabError for an invalid name or a driver without snapshots.
    """
    op, name, names = str(request["op"]), request.get("name"), _names(request)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name):
        raise LabError(f"{op}: name: {name}: use a-z, 0-9 and -, first a letter, at most 32 characters")
    if not isinstance(lab.driver, Snapshooter):
        raise LabError(f"{op}: {', '.join(names)}: light nodes; only virtual machines have snapshots")
    nodes = [lab.node(n) for n in names]
    (lab.driver.snapshot if op == "snapshot" else lab.driver.revert)(nodes, name)
    record_live(lab, op, names, {"name": name}, request.get("by"))
    return {"nodes": names, "name": name}


def down(lab: Lab, _: Message) -> dict[str, Any]:
    """Interrupts the lab, which then tears down."""
    lab.loop.interrupt(Interrupted("requested by vnet down"))
    return {}


def _names(request: Message) -> list[str]:
    """Returns the node names of a request; raises LabError if there are none."""
    names = request.get("nodes")
    if not isinstance(names, list) or not names:
        raise LabError(f"{request.get('op')}: nodes: name at least one node")
    return [str(n) for n in names]


def _one_of(request: Message, field: str, words: tuple[str, ...]) -> str:
    """Returns the value of a field; raises LabError if it is not among `words`."""
    if request.get(field) not in words:
        raise LabError(f"{request.get('op')}: {field}: {request.get(field)}: not one of {', '.join(words)}")
    return str(request[field])


ANYTIME: dict[str, Operation] = {"status": status, "fetch": fetch, "down": down}
WHEN_READY: dict[str, Operation] = {
    "inspect": inspect, "software": software, "node": node, "set": settings, "link": link, "add": add,
    "remove": remove, "capture": capture, "snapshot": snapshot, "revert": snapshot,
}  # fmt: skip
