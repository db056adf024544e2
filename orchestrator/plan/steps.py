"""The text that `ip -batch` and `tc -batch` are given, in the order in which it is carried out.

The launcher has made the namespaces before; it sets addresses between the two kinds of steps.
One line a wire: veth pairs are made straight into the node's namespace. Ports get no IPv6 address of their
own (addrgenmode none, before they are up), so that the host's own chatter stays out of the captures. Every
veth has a transmit queue length: some qdiscs take their limit from it, and 0 would drop every packet.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Impairment, Interface, Link, Segment, Step
from .naming import bridge_mac, core_netns, link_macs, node_netns, port_mac
from .netem import qdisc_line

TXQUEUELEN = 1000
_QUEUES = (
    f"txqueuelen {TXQUEUELEN} numtxqueues 1 numrxqueues 1"  # one queue: less memory and time for each pair
)


def network_steps(
    lab: str, segments: Iterable[Segment], interfaces: dict[str, tuple[Interface, ...]], links: Iterable[Link]
) -> tuple[Step, ...]:
    """Bridges, links between segments, and a port for every interface, all in the core namespace."""
    by_name = {segment.name: segment for segment in segments}
    core = core_netns(lab)
    joined = [link for link in links if link.kind == "segments"]
    steps = [Step("ip", core, _text(_bridges(by_name.values())), "bridges of the segments")]
    if joined:
        steps.append(Step("ip", core, _text(_joints(joined, by_name)), "links between segments"))
    ports = [(node, card) for node, cards in interfaces.items() for card in cards]
    steps.append(
        Step(
            "ip", core, _text(_ports(lab, ports, by_name)), f"{len(ports)} ports and their nodes' interfaces"
        )
    )
    return tuple(steps)


def impair_steps(lab: str, links: Iterable[Link]) -> tuple[Step, ...]:
    """One `tc -batch` for each namespace that has an impaired device."""
    lines: dict[str, list[str]] = {}
    for link in links:
        for direction in (link.forward, link.reverse):
            if direction.impairment.present:
                lines.setdefault(direction.netns, []).append(
                    qdisc_line(direction.device, direction.impairment)
                )
    return tuple(Step("tc", netns, _text(text), "impairments of links") for netns, text in lines.items())


def plain_line(device: str) -> str:
    """Takes a device's impairment away; the wire is plain again."""
    return f"qdisc del dev {device} root"


def impair_line(device: str, wanted: Impairment) -> str:
    """Sets an impairment, also over an earlier one."""
    return qdisc_line(device, wanted)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _bridges(segments: Iterable[Segment]) -> Iterable[str]:
    for index, segment in enumerate(segments):
        # No spanning tree (check refuses loops), no snooping: a bridge that only forwards and learns.
        options = "stp_state 0 mcast_snooping 0"
        mac = bridge_mac(index)
        yield f"link add name {segment.bridge} address {mac} mtu {segment.mtu} type bridge {options}"
        yield from _quiet(segment.bridge, segment)
        yield f"link set dev {segment.bridge} up"


def _joints(links: Iterable[Link], segments: dict[str, Segment]) -> Iterable[str]:
    for index, link in enumerate(links):
        a, b = link.forward.device, link.reverse.device
        macs, mtu = link_macs(index), segments[link.a].mtu
        peer = f"peer name {b} address {macs[1]} mtu {mtu} {_QUEUES}"
        yield f"link add name {a} address {macs[0]} mtu {mtu} {_QUEUES} type veth {peer}"
        for device, segment in ((a, segments[link.a]), (b, segments[link.b])):
            yield from _quiet(device, segment)
            yield f"link set dev {device} master {segment.bridge} up"


def _ports(lab: str, ports: list[tuple[str, Interface]], segments: dict[str, Segment]) -> Iterable[str]:
    for node, card in ports:
        inside = (
            f"peer name {card.name} address {card.mac} mtu {card.mtu} {_QUEUES} netns {node_netns(lab, node)}"
        )
        outside = f"name {card.port} address {port_mac(card.address)} mtu {card.mtu} {_QUEUES}"
        yield f"link add {outside} type veth {inside}"
        yield from _quiet(card.port, segments[card.segment])
        yield f"link set dev {card.port} master {segments[card.segment].bridge} up"


def _quiet(device: str, segment: Segment) -> Iterable[str]:
    if not segment.ipv6:
        yield f"link set dev {device} addrgenmode none"
