"""Contains the common code of exports: commands that configure a node, checks of the plan, and lists of the
parts of a plan that other tools cannot represent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from contract.plan import Direction, Impairment, Link, Node, Plan
from contract.plan.family import faces

USUAL_MTU = 1500  # bytes, of an interface that nothing sets
UNITS = ("delay_ns", "jitter_ns", "loss", "rate_bps")  # impairments that every tool can represent


class ExportError(ValueError):
    """Raised for a plan that cannot be exported; the text states value, rule and remedy."""


@dataclass(frozen=True)
class Exported:
    """The text of an exported file, and a line on each part of the plan that it does not have."""

    text: str
    left: tuple[str, ...]


def node_commands(node: Node, interfaces: dict[str, str]) -> Iterator[str]:
    """Yields commands that configure a Linux machine as the node: MTUs other than Linux's own, addresses,
    forwarding, routes; `interfaces` maps vNET's interface names to those of the other tool.
    """
    for card in node.interfaces:
        if card.mtu != USUAL_MTU:
            yield f"ip link set dev {interfaces[card.name]} mtu {card.mtu}"
    for card in faces(node.interfaces):
        yield f"ip addr add {card.address}/{card.prefix} dev {interfaces[card.name]}"
    if node.forward:
        yield "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
    for route in node.routes:
        for to in route.to:
            hops = " ".join(f"nexthop via {via}" for via in route.via)
            yield f"ip route replace {to} {f'via {route.via[0]}' if len(route.via) == 1 else hops}"


def insist_light(plan: Plan) -> None:
    """Raises ExportError if a node of the plan is not a light node, or if an interface is a network card of
    the machine (passthrough) or has a VLAN tag.
    """
    for node in plan.nodes:
        if node.kind != "light":
            raise ExportError(
                f"{node.name}: is a virtual machine, which cannot be exported; write kind: light"
            )
        for card in node.interfaces:
            if card.nic is not None or card.vlan is not None:
                what = "a NIC of this machine" if card.nic is not None else "a tagged interface"
                raise ExportError(
                    f"{node.name}: {card.name} is {what}, which cannot be exported; leave it out"
                )


def left_out(plan: Plan) -> Iterator[str]:
    """Yields a line on each part of the plan that no export carries: software, captures, the timeline, half
    duplex, traces, and impairments other than delay, jitter, loss and rate.
    """
    for node in plan.nodes:
        for one in node.software:
            yield f"{node.name}: software {one.name}"
    for capture in plan.captures:
        yield f"capture {capture.name}"
    if plan.events:
        yield f"timeline: {len(plan.events)} events"
    for link in plan.links:
        if link.half_duplex:
            yield f"link {link.name}: half duplex"
        for side, direction in sides(link):
            if direction.trace is not None:
                yield f"link {link.name} {side}: its trace"
            if more := sorted(_more(direction.impairment)):
                yield f"link {link.name} {side}: {', '.join(more)}"


def sides(link: Link) -> tuple[tuple[str, Direction], tuple[str, Direction]]:
    """Returns both directions of a link, each with its name, "forward" or "reverse"."""
    return ("forward", link.forward), ("reverse", link.reverse)


def _more(impairment: Impairment) -> Iterator[str]:
    """Yields the names of the impairment's properties that differ from the default, without delay, jitter,
    loss, rate, and the properties that only size the queue.
    """
    plain = Impairment()
    sized = {"limit_packets", "frame_bytes", "netem_stays", *UNITS}
    for name in Impairment.__dataclass_fields__:
        if name not in sized and getattr(impairment, name) != getattr(plain, name):
            yield name.replace("_", " ")
