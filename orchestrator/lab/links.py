"""Changes links of a running lab: sets impairments and reads them back, sets links down and up again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from contract.codec import build
from contract.plan import Impairment, Link, Node, Step
from contract.plan.network import REACH
from orchestrator import queueing
from orchestrator.lab import readback, sampling
from orchestrator.lab.errors import LabError
from orchestrator.lab.lab import Lab
from orchestrator.language.units import text_ns
from orchestrator.plan.netem import FRAME_BYTES
from orchestrator.plan.queues import impossible
from orchestrator.plan.vrfs import route_lines

End = tuple[str, str]  # namespace and device
FIELDS = {f.name for f in dataclasses.fields(Impairment)}


def impair(lab: Lab, name: str, direction: str, wanted: Impairment) -> None:
    """Replaces the impairment of one direction, or of both directions of a half-duplex link. Only its longest
    frame (`frame_bytes`) stays. Raises LabError if the read-back differs.
    """
    before = lab.impairments[lab.link(name).name, direction]
    _set(lab, name, direction, dataclasses.replace(wanted, frame_bytes=before.frame_bytes))


def admit(lab: Lab, names: Iterable[str], mtu: int) -> None:
    """Enlarges token buckets for frames of this MTU, on those of the links that have a rate, since a token
    bucket drops frames longer than its size. Does not reduce buckets.
    """
    for name in names:
        for direction in ("forward", "reverse"):
            before = lab.impairments[name, direction]
            if before.rate_bps and before.frame_bytes < mtu + FRAME_BYTES:
                _set(lab, name, direction, dataclasses.replace(before, frame_bytes=mtu + FRAME_BYTES))


def _set(lab: Lab, name: str, direction: str, wanted: Impairment) -> None:
    at, before = lab.link(name).way(direction), lab.impairments[name, direction]
    if text := queueing.change_text(at.carrier, before, wanted):
        lab.driver.apply(Step("tc", at.netns, text, f"link {name} {direction}", at.host))
        for way in ("forward", "reverse") if at.shared is not None else (direction,):
            lab.impairments[name, way] = wanted
        if queueing.parts(before) != queueing.parts(wanted):
            sampling.renew(lab)
        lab.after_change(name, direction)
    place = f"links.{name}.{direction}"
    there = readback.of_host(lab.driver.qdiscs(at.netns), at.host)
    readback.insist(readback.impairment(place, wanted, there, at.carrier))


def impair_from(lab: Lab, name: str, sides: dict[str, Any]) -> None:
    """Applies a timeline event. `sides` has a whole impairment for each direction, or None for a direction
    that does not change.
    """
    for direction in ("forward", "reverse"):
        if sides.get(direction) is not None:
            impair(lab, name, direction, build(Impairment, sides[direction]))


def change(lab: Lab, name: str, direction: str, changes: dict[str, Any]) -> Impairment:
    """Merges single fields into the present impairment of a direction; returns the result. Raises LabError
    for a direction that a trace sets.
    """
    if lab.link(name).way(direction).trace is not None:
        raise LabError(
            f"links.{name}.{direction}: is played from a trace, which would undo the change; "
            "change the trace's file, or take the link down"
        )
    wanted = merged(lab.impairments[name, direction], changes, f"links.{name}.{direction}")
    impair(lab, name, direction, wanted)
    return wanted


def set_up(lab: Lab, names: Iterable[str], up: bool) -> None:
    """Sets links down or up, in one batch for each namespace, and reads the state back; restores routes of
    links that are up again.
    """
    names = list(names)
    ends = [end for name in names for end in wire_ends(lab, name)]
    set_devices(lab, ends, up)
    (lab.down.difference_update if up else lab.down.update)(names)
    if up:
        _routes_again(lab, names)


def set_devices(lab: Lab, ends: Iterable[End], up: bool) -> None:
    """Sets devices down or up; raises LabError if a device is not in that state afterwards."""
    word = "up" if up else "down"
    by_netns: dict[str, list[str]] = {}
    for netns, device in ends:
        by_netns.setdefault(netns, []).append(device)
    wrong = []
    for netns, devices in by_netns.items():
        text = "".join(f"link set dev {device} {word}\n" for device in devices)
        lab.driver.apply(Step("ip", netns, text, f"links {word}"))
        flags = {e["ifname"]: e.get("flags", ()) for e in lab.driver.devices(netns)}
        wrong += [
            readback.Difference(f"{netns}.{d}", word, "up" if "UP" in flags.get(d, ()) else "down or absent")
            for d in devices if ("UP" in flags.get(d, ())) != up
        ]  # fmt: skip
    readback.insist(wrong)


def put_back(lab: Lab, nodes: Iterable[Node]) -> None:
    """Sets the ports and wires of nodes up again, except wires of links that were set down."""
    nodes = list(nodes)
    wires = [name for node in nodes for name in wires_of(lab, node) if name not in lab.down]
    # A VM node's port on a link between nodes is the end of that link.
    there = [
        c.port for n in nodes for c in n.interfaces if c.port and (n.vm is None or c.segment not in lab.down)
    ]
    set_devices(lab, [(lab.plan.core_netns, port) for port in there], True)
    set_devices(lab, [end for name in wires for end in wire_ends(lab, name)], True)
    _routes_again(lab, wires)


def wires_of(lab: Lab, node: Node) -> list[str]:
    """Returns the names of the links from a node to other nodes."""
    return [li.name for li in lab.links.values() if li.kind == "nodes" and node.name in (li.a, li.b)]


def carriers_of(lab: Lab, node: Node) -> list[str]:
    """Returns the names of the links that a node's frames pass first: links to other nodes, links to its
    segments, and media.
    """
    segments = {card.segment for card in node.interfaces}
    own = [
        li.name for li in lab.links.values()
        if (li.kind == "access" and li.a == node.name) or (li.kind == "medium" and li.a in segments)
    ]  # fmt: skip
    return wires_of(lab, node) + own


def _routes_again(lab: Lab, names: Iterable[str]) -> None:
    """Restores routes and neighbours of nodes on these links, which the kernel removes when an interface goes
    down.

    Virtual machines do not need this: their interfaces stay up and only lose the carrier.
    """
    ends = {n for name in names if (li := lab.link(name)).kind == "nodes" for n in (li.a, li.b)}
    lost = {a for n in lab.nodes.values() for c in n.interfaces if c.segment in lab.down for a in c.addresses}
    for node in (node for name in sorted(ends) if (node := lab.node(name)).vm is None):
        text = "".join(
            f"route replace {to} proto static {_hops(via)}\n"
            for route in node.routes if (via := [v for v in route.via if v not in lost]) for to in route.to
        )  # fmt: skip
        text += "".join(f"{line}\n" for line in route_lines(node, lost)) if node.vrfs else ""
        up = {c.name for c in node.interfaces if c.segment not in lab.down}
        text += "".join(
            f"neigh replace {n.address} lladdr {n.mac} dev {n.device} nud permanent\n"
            for n in node.neighbours if n.device in up
        )  # fmt: skip
        if text:
            lab.driver.apply(Step("ip", node.netns, text, f"routes of {node.name}"))


def _hops(via: list[str]) -> str:
    return f"via {via[0]}" if len(via) == 1 else " ".join(f"nexthop via {one}" for one in via)


def wire_ends(lab: Lab, name: str) -> list[End]:
    """Returns (namespace, device) of each device to set down with a link.

    It is the link's end in the core, the bridge of a medium, or both ends of a wire between nodes, so that
    both nodes notice it (virtual machines lose their carrier).
    """
    link, core = lab.link(name), lab.plan.core_netns
    if link.kind == "nodes":
        if not link.through_core:
            return [(way.netns, way.device) for way in (link.forward, link.reverse)]
        nodes = lab.node(link.a), lab.node(link.b)
        return [
            (n.netns, c.name) if n.vm is None else (core, c.port)
            for n in nodes for c in n.interfaces if c.segment == name
        ]  # fmt: skip
    if link.kind == "medium":
        return [(core, s.bridge) for s in lab.plan.segments if s.name == name]
    side = link.reverse if link.kind == "access" else link.forward
    if side.enter is not None:  # the qdisc is inside a bridge VM, whose tap is the end in the core namespace
        return [(core, side.enter)]
    return [(side.netns, side.device)]


def in_core(lab: Lab, link: Link) -> list[str]:
    """Returns the devices of a link between two nodes in the core namespace; empty if its wire bypasses the
    core.
    """
    if not link.through_core:
        return []
    # If the link leads through a bridge VM, the VM has the qdisc.
    ways = (link.forward, link.reverse) if link.forward.enter is None else ()
    nodes = [node for name in (link.a, link.b) if (node := lab.nodes.get(name)) is not None]
    cards = [card for node in nodes for card in node.interfaces if card.segment == link.name]
    ends = [device for card in cards for device in (card.port, card.bridge) if device]
    return list(dict.fromkeys([*(way.carrier for way in ways), *(way.device for way in ways), *ends]))


def all_ends(lab: Lab, node: Node) -> list[End]:
    """Returns the devices to set down with a node: its ports in the core, and both ends of its wires."""
    core, wires = lab.plan.core_netns, wires_of(lab, node)
    return [(core, port) for port in ports(node)] + [end for name in wires for end in wire_ends(lab, name)]


def opposite_ends(lab: Lab, node: Node) -> list[tuple[str, str]]:
    """Returns (node, interface) at the other end of each wire of the node."""
    wires = set(wires_of(lab, node))
    others = [other for other in lab.nodes.values() if other.name != node.name]
    return [(other.name, i.name) for other in others for i in other.interfaces if i.segment in wires]


def ports(node: Node) -> list[str]:
    """Returns a node's ports in the core namespace; a NIC without a cable back into the lab has none."""
    return [interface.port for interface in node.interfaces if interface.port]


def merged(current: Impairment, changes: dict[str, Any], place: str) -> Impairment:
    """Returns `current` with some fields replaced; raises LabError for an unknown field or an impossible
    value.
    """
    if unknown := changes.keys() - FIELDS:
        raise LabError(
            f"{place}: no such quantity: {', '.join(sorted(unknown))}; known: {', '.join(sorted(FIELDS))}"
        )
    changed = build(Impairment, {**dataclasses.asdict(current), **changes})
    for name in FIELDS - {"distribution", "gemodel", "queue", "slot", "netem_stays", "backpressure"}:
        value = getattr(changed, name)
        highest = 1.0 if isinstance(value, float) else float("inf")
        if not 0 <= value <= highest:
            raise LabError(f"{place}.{name}: {value}: not between 0 and {highest:g}")
    if (reach := changed.jitter_ns * REACH.get(changed.distribution, 0)) > changed.delay_ns:
        raise LabError(
            f"{place}.jitter: {text_ns(changed.jitter_ns)} {changed.distribution} needs a delay of at least "
            f"{text_ns(round(reach))}, has {text_ns(changed.delay_ns)}; a packet cannot leave before it came"
        )
    if changed.present and not changed.limit_packets:
        raise LabError(f"{place}.limit: 0 packets: a queue that drops everything; give a limit")
    if (wrong := impossible(changed)) is not None:
        raise LabError(f"{place}: {wrong}")
    return changed
