"""Changes nodes of a running lab: MTU, limits, host name, and adding or removing nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from contract.plan import Link, Node, Step
from orchestrator.lab import apply, operations, power, readback, sampling
from orchestrator.lab.errors import LabError
from orchestrator.lab.lab import Lab
from orchestrator.lab.links import admit, carriers_of, in_core, opposite_ends, ports, wires_of
from orchestrator.lab.probes import directions

LIMITS = ("cpu_limit_mhz", "cpu_limit_cores", "cpu_reserve_mhz", "cpu_reserve_cores")
OTHER_UNIT = {
    name: name.replace("mhz", "cores") if "mhz" in name else name.replace("cores", "mhz") for name in LIMITS
}


def settings(lab: Lab, names: Sequence[str], wanted: dict[str, Any]) -> dict[str, Any]:
    """Sets MTU, host name, CPU limits and CPU reservations of nodes; a setting that is None stays. Returns
    {node: values read back}, including nodes at the other ends of wires whose MTU changes.

    Raises LabError for unknown settings, a host name for several nodes, limits that are not above 0, or
    values that differ when read back.
    """
    known = {*LIMITS, "mtu", "hostname"}
    if unknown := {k for k, v in wanted.items() if v is not None} - known:
        raise LabError(
            f"set: no such setting: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
        )
    if wanted.get("hostname") is not None and len(names) != 1:
        raise LabError(f"set: hostname: one name for {len(names)} nodes; name one node")
    nodes = [lab.node(name) for name in names]
    read: dict[str, Any] = {node.name: {} for node in nodes}
    for node in nodes:
        if wanted.get("mtu") is not None:
            for name, mtus in _mtu(lab, node, int(wanted["mtu"])).items():
                read[name] = {**read.get(name, {}), "mtu": {**read.get(name, {}).get("mtu", {}), **mtus}}
        if wanted.get("hostname") is not None:
            read[node.name]["hostname"] = _hostname(lab, node, str(wanted["hostname"]))
    if limits := {k: float(wanted[k]) for k in LIMITS if wanted.get(k) is not None}:
        for name, applied in _limits(lab, [n.name for n in nodes], limits).items():
            read.setdefault(name, {})["limits"] = applied
    return read


def _mtu(lab: Lab, node: Node, mtu: int) -> dict[str, dict[str, int]]:
    """Sets the MTU at both ends of each wire of the node, also of wires to other nodes; returns {node:
    {interface: MTU read back}}.
    """
    admit(lab, carriers_of(lab, node), mtu)
    wires = [device for name in wires_of(lab, node) for device in in_core(lab, lab.link(name))]
    devices = list(dict.fromkeys([*ports(node), *wires]))
    text = "".join(f"link set dev {device} mtu {mtu}\n" for device in devices)
    if text:
        lab.driver.apply(Step("ip", lab.plan.core_netns, text, f"nodes.{node.name}: mtu {mtu}"))
    ends = {node.name: {i.name for i in node.interfaces}}
    for other, interface in opposite_ends(lab, node):
        ends.setdefault(other, set()).add(interface)
    read = {
        name: lab.driver.call(operations.Set(name, mtu=dict.fromkeys(sorted(faces), mtu)))["mtu"]
        for name, faces in ends.items()
    }
    core = {e["ifname"]: e.get("mtu") for e in lab.driver.devices(lab.plan.core_netns)}
    found: list[tuple[str, int | None]] = [
        (f"{name}.{face}", is_) for name, faces in read.items() for face, is_ in faces.items()
    ]
    found += [(f"{node.name}.{device}", core.get(device)) for device in devices]
    readback.insist([readback.Difference(f"nodes.{at}.mtu", mtu, is_) for at, is_ in found if is_ != mtu])
    for name, faces in ends.items():
        there = lab.node(name)
        changed = tuple(dataclasses.replace(i, mtu=mtu) if i.name in faces else i for i in there.interfaces)
        lab.nodes[name] = dataclasses.replace(there, interfaces=changed)
    return read


def _hostname(lab: Lab, node: Node, name: str) -> str:
    read = lab.driver.call(operations.Set(node.name, hostname=name))["hostname"]
    readback.insist([readback.Difference(f"nodes.{node.name}.hostname", name, read)] if read != name else [])
    lab.nodes[node.name] = dataclasses.replace(lab.node(node.name), hostname=name)
    return read


def _limits(lab: Lab, names: Sequence[str], limits: dict[str, float]) -> dict[str, Any]:
    for name, value in limits.items():
        if value <= 0:
            raise LabError(f"set: {name}: {value:g}: not above 0")
    fields: dict[str, Any] = {**{OTHER_UNIT[k]: None for k in limits}, **limits}
    changed = [dataclasses.replace(lab.node(name), **fields) for name in names]
    applied = lab.driver.limit(changed)
    lab.nodes |= {n.name: n for n in changed}
    lab.note_limits(applied)
    return {name: applied[name] for name in names if name in applied}


def add(lab: Lab, node: Node, steps: Sequence[Step], links: Sequence[Link] = ()) -> None:
    """Adds a node to the running lab: creates, wires and configures it, reads back and proves its links,
    starts its programs.

    Removes the node if a step fails, and raises LabError.
    """
    if node.name in lab.nodes:
        raise LabError(f"add: node {node.name}: exists already; choose another name")
    if taken := [link.name for link in links if link.name in lab.links]:
        raise LabError(f"add: link {taken[0]}: exists already; choose another name")
    lab.nodes[node.name] = node
    lab.join(links)
    phase = lab.events.phase_name
    try:
        apply.create(lab, [node])
        for step in steps:
            lab.driver.apply(step)
        apply.configure(lab, [node])
        apply.wait_for_ports(lab, ports(node))
        apply.read_back(lab, links)
        apply.prove(lab, links)
        sampling.renew(lab)
        power.insist(power.start(lab, lab.processes([node.name])))
        lab.on_added(links)
        for name, way, _ in directions(links):
            lab.after_change(name, way)
    except LabError:
        _take_away(lab, [node])
        raise
    finally:
        lab.events.phase_name = phase  # the lab continues in its own phase


def remove(lab: Lab, names: Sequence[str]) -> None:
    """Removes the nodes with their programs and links."""
    nodes = [lab.node(name) for name in names]
    lab.meant |= {(n.name, s.name) for n in nodes for s in n.software}
    _take_away(lab, nodes)
    sampling.renew(lab)


def _unwire(lab: Lab, names: set[str]) -> None:
    """Removes the devices of the nodes' links in the core namespace, which remain after a node's namespace is
    gone.

    The kernel deletes ports of light nodes together with their namespaces, at a later time (cleanup_net in
    net/core/net_namespace.c); deleting one here would race with the kernel. A virtual machine that stays
    keeps its tap, without a carrier.
    """
    core, devices, kept = lab.plan.core_netns, list[str](), set[str]()
    light = [node for name in names if (node := lab.node(name)).vm is None]
    going = {card.port for node in light for card in node.interfaces}
    for link in lab.links.values():
        if link.kind == "nodes" and {link.a, link.b} & names:
            devices += [
                device for device in in_core(lab, link) if device != link.reverse.device
            ]  # both directions become one pair
            stay = [lab.node(name) for name in {link.a, link.b} - names]
            kept |= {c.port for n in stay if n.vm is not None for c in n.interfaces if c.segment == link.name}
        elif link.kind == "access" and link.half_duplex and link.a in names:
            cards = [card for card in lab.node(link.a).interfaces if card.segment == link.b]
            devices += [link.forward.carrier, link.forward.device]
            devices += [device for card in cards for device in (card.port, card.bridge) if device]
    there = {str(entry["ifname"]) for entry in lab.driver.devices(core)} if devices else set[str]()
    text = "".join(f"link set dev {port} down\n" for port in sorted(kept & there))
    text += "".join(f"link del dev {device}\n" for device in devices if device in there - kept - going)
    if text:
        lab.driver.apply(Step("ip", core, text, "links of removed nodes"))


def _take_away(lab: Lab, nodes: Sequence[Node]) -> None:
    lab.driver.destroy(nodes)
    _unwire(lab, {node.name for node in nodes})
    for node in nodes:
        lab.nodes.pop(node.name, None)
        lab.pids.pop(node.name, None)
        lab.part(node.name)
        lab.node_states[node.name] = "removed"
