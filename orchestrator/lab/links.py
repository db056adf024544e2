"""Links of a running lab: impairments changed and read back, wires taken down and put up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from orchestrator import queueing
from orchestrator.lab import readback, sampling
from orchestrator.lab.errors import LabError
from orchestrator.lab.impair import merged
from orchestrator.lab.lab import Lab, direction_of
from orchestrator.model import Impairment, Link, Node, Step
from orchestrator.model.codec import build
from orchestrator.plan.netem import FRAME_BYTES

End = tuple[str, str]  # namespace and device


def impair(lab: Lab, name: str, direction: str, wanted: Impairment) -> None:
    """Replace one direction's impairment; LabError where the kernel reads back otherwise."""
    before = lab.impairments[lab.link(name).name, direction]
    _set(lab, name, direction, dataclasses.replace(wanted, frame_bytes=before.frame_bytes))


def admit(lab: Lab, names: Iterable[str], mtu: int) -> None:
    """Let frames of that MTU through the links' rates: a token bucket drops what is longer than itself."""
    for name in names:
        for direction in ("forward", "reverse"):
            before = lab.impairments[name, direction]
            if before.rate_bps and before.frame_bytes < mtu + FRAME_BYTES:
                _set(lab, name, direction, dataclasses.replace(before, frame_bytes=mtu + FRAME_BYTES))


def _set(lab: Lab, name: str, direction: str, wanted: Impairment) -> None:
    at, before = direction_of(lab.link(name), direction), lab.impairments[name, direction]
    if text := queueing.change_text(at.carrier, before, wanted):
        lab.driver.apply(Step("tc", at.netns, text, f"link {name} {direction}", at.host))
        for way in ("forward", "reverse") if at.shared is not None else (direction,):
            lab.impairments[name, way] = wanted
        if queueing.parts(before) != queueing.parts(wanted):
            sampling.renew(lab)
    place = f"links.{name}.{direction}"
    there = readback.of_host(lab.driver.qdiscs(at.netns), at.host)
    readback.insist(readback.impairment(place, wanted, there, at.carrier))


def impair_from(lab: Lab, name: str, sides: dict[str, Any]) -> None:
    """As a timeline event has it: whole impairments, or None for a direction that stays as it is."""
    for direction in ("forward", "reverse"):
        if sides.get(direction) is not None:
            impair(lab, name, direction, build(Impairment, sides[direction]))


def change(lab: Lab, name: str, direction: str, changes: dict[str, Any]) -> Impairment:
    """Merge single fields into what is set now."""
    if direction_of(lab.link(name), direction).trace is not None:
        raise LabError(
            f"links.{name}.{direction}: is played from a trace, which would undo the change; "
            "change the trace's file, or take the link down"
        )
    wanted = merged(lab.impairments[name, direction], changes, f"links.{name}.{direction}")
    impair(lab, name, direction, wanted)
    return wanted


def set_up(lab: Lab, names: Iterable[str], up: bool) -> None:
    """Take links down or put them up, in one batch for each namespace, and read the state back."""
    names = list(names)
    ends = [end for name in names for end in wire_ends(lab, name)]
    set_devices(lab, ends, up)
    (lab.down.difference_update if up else lab.down.update)(names)
    if up:
        _routes_again(lab, names)


def set_devices(lab: Lab, ends: Iterable[End], up: bool) -> None:
    """Set devices up or down."""
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
    """Nodes that were off the network are on it again, but for wires that are cut in themselves."""
    nodes = list(nodes)
    wires = [name for node in nodes for name in wires_of(lab, node) if name not in lab.down]
    # A machine's port on a link between nodes is that link's own end.
    there = [
        c.port for n in nodes for c in n.interfaces if c.port and (n.vm is None or c.segment not in lab.down)
    ]
    set_devices(lab, [(lab.plan.core_netns, port) for port in there], True)
    set_devices(lab, [end for name in wires for end in wire_ends(lab, name)], True)
    _routes_again(lab, wires)


def wires_of(lab: Lab, node: Node) -> list[str]:
    """Links of a node to others."""
    return [li.name for li in lab.links.values() if li.kind == "nodes" and node.name in (li.a, li.b)]


def carriers_of(lab: Lab, node: Node) -> list[str]:
    """All that its frames pass first: its wires, its own links to segments, and those that are one medium."""
    segments = {card.segment for card in node.interfaces}
    own = [
        li.name for li in lab.links.values()
        if (li.kind == "access" and li.a == node.name) or (li.kind == "medium" and li.a in segments)
    ]  # fmt: skip
    return wires_of(lab, node) + own


def _routes_again(lab: Lab, names: Iterable[str]) -> None:
    """The kernel forgets routes and neighbours of an interface that goes down; the plan's come back with it.

    Not a virtual machine's: its interface stays up, and only loses its carrier.
    """
    ends = {n for name in names if (li := lab.link(name)).kind == "nodes" for n in (li.a, li.b)}
    lost = {c.address for n in lab.nodes.values() for c in n.interfaces if c.segment in lab.down}
    for node in (node for name in sorted(ends) if (node := lab.node(name)).vm is None):
        text = "".join(
            f"route replace {to} proto static {_hops(via)}\n"
            for route in node.routes if (via := [v for v in route.via if v not in lost]) for to in route.to
        )  # fmt: skip
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
    """(namespace, device) of what goes down when the link does: its end in the core, the bridge of a medium,
    or both ends of a wire between nodes, whose routers then know of it (virtual machines by their carrier).
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
    if side.enter is not None:  # the qdisc is inside a bridge VM; its tap is the end in the core
        return [(core, side.enter)]
    return [(side.netns, side.device)]


def in_core(lab: Lab, link: Link) -> list[str]:
    """Devices of the core that a link between two nodes has there; none where it leads from node to node."""
    if not link.through_core:
        return []
    ways = (link.forward, link.reverse) if link.forward.enter is None else ()  # else a bridge VM's
    nodes = [node for name in (link.a, link.b) if (node := lab.nodes.get(name)) is not None]
    cards = [card for node in nodes for card in node.interfaces if card.segment == link.name]
    ends = [device for card in cards for device in (card.port, card.bridge) if device]
    return list(dict.fromkeys([*(way.carrier for way in ways), *(way.device for way in ways), *ends]))


def all_ends(lab: Lab, node: Node) -> list[End]:
    """What goes down with a node: its ports in the core, and its wires."""
    core, wires = lab.plan.core_netns, wires_of(lab, node)
    return [(core, port) for port in ports(node)] + [end for name in wires for end in wire_ends(lab, name)]


def opposite_ends(lab: Lab, node: Node) -> list[tuple[str, str]]:
    """(node, interface) at the other end of each wire that leads to another node."""
    wires = set(wires_of(lab, node))
    others = [other for other in lab.nodes.values() if other.name != node.name]
    return [(other.name, i.name) for other in others for i in other.interfaces if i.segment in wires]


def ports(node: Node) -> list[str]:
    """Ends in the core namespace; a NIC without a cable back into the lab has none."""
    return [interface.port for interface in node.interfaces if interface.port]
