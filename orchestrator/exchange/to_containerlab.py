"""Exports a plan as a topology of containerlab: Linux nodes, bridges and links, with impairments as
commands.
"""

from __future__ import annotations

from contract.plan import Impairment, Interface, Link, Node, Plan
from vnet.topology import Topology

from .outgoing import Exported, insist_light, left_out, node_commands, sides

IMAGE = "ghcr.io/srl-labs/network-multitool"


def export(plan: Plan, image: str = IMAGE) -> Exported:
    """Returns the topology file, with a comment for each impaired direction, and lines on what is left out.

    Raises ExportError for a plan with a VM node, passthrough or a VLAN tag.
    """
    insist_light(plan)
    names = {node.name: _interfaces(node) for node in plan.nodes}
    nodes: dict[str, object] = {segment.name: {"kind": "bridge"} for segment in plan.segments}
    for node in plan.nodes:
        commands = list(node_commands(node, names[node.name]))
        nodes[node.name] = {"kind": "linux", "image": image} | ({"exec": commands} if commands else {})
    links = [{"endpoints": list(ends)} for ends in _links(plan, names)]
    made = Topology(plan.lab, topology={"nodes": nodes, "links": links})
    netem = [line for link in plan.links for line in _netem(plan, link, names)]
    left = [
        *left_out(plan),
        *(
            f"segment {s.name}: make the bridge first: ip link add {s.name} type bridge"
            for s in plan.segments
        ),
        *(f"segment {s.name}: its spanning tree: stp_state 1" for s in plan.segments if s.stp),
    ]
    comments = "".join(f"#   {line}\n" for line in netem)
    head = f"# After `containerlab deploy`, the impairments:\n{comments}" if netem else ""
    return Exported(f"{head}{made.yaml()}", tuple(left))


def _interfaces(node: Node) -> dict[str, str]:
    """Maps vNET's interface names to containerlab's, from eth1, since eth0 is on the management network."""
    return {card.name: f"eth{number}" for number, card in enumerate(node.interfaces, 1)}


def _links(plan: Plan, names: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    segments = {segment.name for segment in plan.segments}
    for node in plan.nodes:
        for card in node.interfaces:
            if card.segment in segments:
                found.append((f"{node.name}:{names[node.name][card.name]}", f"{card.segment}:p{len(found)}"))
    for link in plan.links:
        if link.kind == "segments":
            found.append((f"{link.a}:p{len(found)}a", f"{link.b}:p{len(found)}b"))
        elif link.kind == "nodes":
            found.append((_end(plan, link, link.a, names), _end(plan, link, link.b, names)))
    return found


def _card(plan: Plan, link: Link, name: str) -> Interface:
    node = next(node for node in plan.nodes if node.name == name)
    on = link.name if link.kind == "nodes" else link.b
    return next(card for card in node.interfaces if card.segment == on)


def _end(plan: Plan, link: Link, name: str, names: dict[str, dict[str, str]]) -> str:
    return f"{name}:{names[name][_card(plan, link, name).name]}"


def _netem(plan: Plan, link: Link, names: dict[str, dict[str, str]]) -> list[str]:
    """Returns a `containerlab tools netem` command for each impaired direction that leaves a node; for one
    that leaves a bridge, only a note on it.
    """
    found = []
    for (side, direction), name in zip(sides(link), (link.a, link.b), strict=True):
        if not direction.impairment.present:
            continue
        if link.kind == "nodes" or (link.kind == "access" and side == "forward"):
            end = _end(plan, link, name, names).partition(":")[2]
            where = f"-n clab-{plan.lab}-{name} -i {end}"
            found.append(f"containerlab tools netem set {where} {words(direction.impairment)}")
        else:
            found.append(f"(link {link.name} {side}: {words(direction.impairment)}: tc on the bridge's port)")
    return found


def words(impairment: Impairment) -> str:
    """Returns the delay, jitter, loss and rate that are not 0, as options of `containerlab tools netem
    set`.
    """
    given = [
        (impairment.delay_ns, f"--delay {impairment.delay_ns / 1e6:.12g}ms"),
        (impairment.jitter_ns, f"--jitter {impairment.jitter_ns / 1e6:.12g}ms"),
        (impairment.loss, f"--loss {impairment.loss * 100:.12g}"),
        (impairment.rate_bps, f"--rate {impairment.rate_bps / 1e3:.12g}"),
    ]
    return " ".join(word for value, word in given if value)
