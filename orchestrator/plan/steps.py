"""Writes the input of `ip -batch` and `tc -batch`, in the order of execution.

The launcher makes the namespaces before these steps, and sets addresses between the `ip` and the `tc` steps.
Veth pairs are created directly in the node's namespace, one line for each wire. Ports get no IPv6 address of
their own (addrgenmode none, before they are up), so that packets of the host stay out of captures. Every veth
has a transmit queue length, since some qdiscs take their limit from it, and 0 would drop every packet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from contract.plan import Interface, Link, Plan, Segment, Step
from contract.plan.family import IPV6_LEAST_MTU

from .. import queueing
from ..queueing import half_duplex
from .half_duplex import MEDIUM, entering
from .naming import bridge_mac, core_netns, link_macs, node_netns, of_own, port_mac, station_mac

TXQUEUELEN = 1000
# The shortest timers that IEEE 802.1D allows (2 x (forward delay - 1 s) >= max age >= 6 s), in 1/100 s.
# Addresses are dropped after 4 s without a frame. A longer time would not do: Linux shortens it when the tree
# changes, but searches for old addresses only at the time that was set before (br_fdb_cleanup in
# net/bridge/br_fdb.c), perhaps minutes later.
STP = "stp_state 1 hello_time 100 max_age 600 forward_delay 400 ageing_time 400"
PRIORITIES = "egress-qos-map " + " ".join(f"{n}:{n}" for n in range(8))
_QUEUES = (
    # A single queue saves memory and time for each veth pair.
    f"txqueuelen {TXQUEUELEN} numtxqueues 1 numrxqueues 1"
)


def network_steps(
    lab: str,
    segments: Iterable[Segment],
    interfaces: dict[str, tuple[Interface, ...]],
    links: Sequence[Link],
    vms: Collection[str] = (),
    first: int = 0,
) -> tuple[Step, ...]:
    """Returns the `ip` steps that create the bridges of segments, the links between segments, interfaces' own
    bridges with their links, a port and an interface for each card, tagged interfaces, links between nodes,
    this host's ends of links to nodes of other hosts, and half-duplex media. Links that a bridge VM carries
    get no veth pair.
    vms: nodes whose ports are tap devices for their virtual machines. first: the first number for MAC
    addresses of bridges and links; each host of a multi-host lab has another one.
    """
    by_name = {segment.name: segment for segment in segments}
    core = core_netns(lab)
    joined = [link for link in links if link.kind == "segments" and link.forward.enter is None]
    steps = [Step("ip", core, _text(_bridges(by_name.values(), first)), "bridges of the segments")]
    if joined:
        steps.append(Step("ip", core, _text(_joints(joined, by_name, first)), "links between segments"))
    ports = [(node, card) for node, cards in interfaces.items() for card in cards]
    access = {(link.a, link.b): link for link in links if link.kind == "access"}
    if own := [
        line for node, card in ports for line in _own(access.get((node, card.segment)), card, by_name)
    ]:
        steps.append(Step("ip", core, _text(own), "own links of virtual machines" if vms else "own links"))
    lines = [
        line
        for node, card in ports
        if card.segment in by_name
        for line in _port(lab, node, card, by_name, node in vms)
    ]
    # A bridge takes the MTU of its narrowest port unless one is set.
    mixed = dict.fromkeys(card.segment for _, card in ports if _narrow(card, by_name))
    lines += [f"link set dev {by_name[name].bridge} mtu {by_name[name].mtu}" for name in mixed]
    if lines:
        count = sum(card.segment in by_name for _, card in ports)
        steps.append(Step("ip", core, _text(lines), f"{count} ports and their nodes' interfaces"))
    cards = {(node, card.segment): card for node, card in ports}
    for node, card in ports:
        if card.vlan is not None:
            steps.append(
                Step("ip", node_netns(lab, node), _text(_tagged(card)), f"tagged interface of {node}")
            )
    at_link: dict[str, list[tuple[str, Interface]]] = {}
    for node, card in ports:
        at_link.setdefault(card.segment, []).append((node, card))
    whole = [link for link in links if link.kind == "nodes" and not link.over_hosts]
    inside = [link for link in whole if link.through_core]
    if wires := [_wire(link, cards) for link in whole if not link.through_core]:
        steps.append(Step("ip", core, _text(wires), f"{len(wires)} links between nodes"))
    if bridged := [line for link in inside for line in _through_core(lab, link, at_link[link.name], vms)]:
        steps.append(Step("ip", core, _text(bridged), f"{len(inside)} links between nodes, by the core"))
    if ends := [line for link in links if link.over_hosts for line in _end(lab, at_link[link.name], vms)]:
        steps.append(Step("ip", core, _text(ends), "ends of links to nodes of other hosts"))
    media = [link for link in links if link.kind == MEDIUM]
    if lines := [line for n, link in enumerate(media, first) for line in _medium(n, link, by_name[link.a])]:
        steps.append(Step("ip", core, _text(lines), "media of half duplex segments"))
    return tuple(steps)


def impair_steps(
    lab: str,
    links: Sequence[Link],
    segments: Iterable[Segment] = (),
    interfaces: Iterable[Interface] = (),
    media: Iterable[Link] = (),
) -> tuple[Step, ...]:
    """Returns one `tc -batch` step for each host and namespace that has an impaired device. It sets the
    impairments and redirects half-duplex directions to their shared device.
    media: the lab's links; the new ports in `interfaces` are connected to the half-duplex media among them.
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for link in links:
        for direction in (link.forward, link.reverse):
            place = (direction.host, direction.netns)
            text = lines.setdefault(place, []) if direction.impairment.present else []
            if direction.shared is not None and link.kind != MEDIUM:
                text.append(half_duplex.hook(direction.device))
                text.append(half_duplex.redirect(direction.device, direction.shared))
            if direction.shared is None or direction is link.forward:
                text.append(queueing.set_text(direction.carrier, direction.impairment))
    cards = list(interfaces)
    for host in dict.fromkeys(link.forward.host for link in media if link.kind == MEDIUM):
        there = [link for link in media if link.forward.host == host]
        if taken := entering(segments, cards, links, there):
            lines.setdefault((host, core_netns(lab)), []).append(taken)
    return tuple(
        Step("tc", netns, "".join(text), "impairments of links", host)
        for (host, netns), text in lines.items()
    )


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _narrow(card: Interface, segments: dict[str, Segment]) -> bool:
    return card.segment in segments and card.mtu != segments[card.segment].mtu


def _bridges(segments: Iterable[Segment], first: int) -> Iterable[str]:
    for index, segment in enumerate(segments, first):
        # The bridge has a spanning tree only if `stp` asks for it (`vnet check` refuses loops without it),
        # and no multicast snooping.
        options = f"{STP if segment.stp else 'stp_state 0'} mcast_snooping 0"
        mac = bridge_mac(index)
        yield f"link add name {segment.bridge} address {mac} mtu {segment.mtu} type bridge {options}"
        yield from _quiet(segment.bridge, segment, segment.mtu)
        yield f"link set dev {segment.bridge} up"


def _joints(links: Iterable[Link], segments: dict[str, Segment], first: int) -> Iterable[str]:
    for index, link in enumerate(links, first):
        a, b = link.forward.device, link.reverse.device
        macs, mtu = link_macs(index), segments[link.a].mtu
        peer = f"peer name {b} address {macs[1]} mtu {mtu} {_QUEUES}"
        if link.nics is None:
            yield f"link add name {a} address {macs[0]} mtu {mtu} {_QUEUES} type veth {peer}"
        else:  # the ports were moved into this namespace earlier
            yield from (f"link set dev {device} mtu {mtu}" for device in (a, b))
        for device, segment in ((a, segments[link.a]), (b, segments[link.b])):
            yield from _quiet(device, segment, mtu)
            yield f"link set dev {device} master {segment.bridge} up"
        for one in link.trunk:
            for device, port, name in ((a, one.device_a, one.a), (b, one.device_b, one.b)):
                yield f"link add link {device} name {port} mtu {mtu} type vlan id {one.vlan}"
                yield from _quiet(port, segments[name], mtu)
                yield f"link set dev {port} master {segments[name].bridge} up"
        yield from _shared(link, mtu)


def _shared(link: Link, mtu: int) -> Iterable[str]:
    """Yields the lines that create the shared transmitter of a half-duplex link; none for another link."""
    if link.forward.shared is not None:
        yield f"link add name {link.forward.shared} mtu {mtu} {_QUEUES} type ifb"
        yield from _silent(link.forward.shared, mtu)
        yield f"link set dev {link.forward.shared} up"


def _medium(index: int, link: Link, segment: Segment) -> Iterable[str]:
    """Yields the lines that create a segment's half-duplex transmitter and the two stations of its link
    proof.
    """
    for side, way in enumerate((link.forward, link.reverse)):
        macs = station_mac(index, 2 * side), station_mac(index, 2 * side + 1)
        peer = f"peer name {way.far_device} address {macs[1]} mtu {segment.mtu} {_QUEUES}"
        yield f"link add name {way.device} address {macs[0]} mtu {segment.mtu} {_QUEUES} type veth {peer}"
        yield from _quiet(way.far_device, segment, segment.mtu)
        yield from _silent(way.device, segment.mtu)  # whether or not the segment's nodes use IPv6
        yield f"link set dev {way.device} up"
        yield f"link set dev {way.far_device} master {segment.bridge} up"
    yield from _shared(link, segment.mtu)


def _own(link: Link | None, card: Interface, segments: dict[str, Segment]) -> Iterable[str]:
    """Yields the lines for an interface's own bridge and, unless a bridge VM carries the link, a veth pair to
    the segment's bridge and the shared transmitter of a half-duplex link.
    link: the node's own link at that interface. No lines if it is None, or if the interface has no own
    bridge.
    """
    if card.bridge is None or link is None:
        return
    segment, mtu = segments[card.segment], card.mtu
    bridge = f"address {of_own(card.mac, 0x1E)} mtu {mtu} type bridge stp_state 0 mcast_snooping 0"
    yield f"link add name {card.bridge} {bridge}"
    yield from _quiet(card.bridge, segment, mtu)
    yield f"link set dev {card.bridge} up"
    if link.forward.enter is not None:
        return
    a, b = link.forward.device, link.reverse.device
    peer = f"peer name {b} address {of_own(card.mac, 0x26)} mtu {mtu} {_QUEUES}"
    yield f"link add name {a} address {of_own(card.mac, 0x22)} mtu {mtu} {_QUEUES} type veth {peer}"
    for device, master in ((a, card.bridge), (b, segment.bridge)):
        yield from _quiet(device, segment, mtu)
        yield f"link set dev {device} master {master} up"
    yield from _shared(link, mtu)


def tap_again(plan: Plan, node: str, card: Interface) -> tuple[Step, ...]:
    """Returns the steps that configure a VM's tap device again after it returned to the core namespace: all
    steps of its port but the creation, and its redirection to a half-duplex medium.
    """
    by_name = {segment.name: segment for segment in plan.segments}
    lines = [li for li in _port(plan.lab, node, card, by_name, True) if not li.startswith("tuntap ")]
    host = next(one.host for one in plan.nodes if one.name == node)
    port = Step("ip", core_netns(plan.lab), _text(lines), f"port of {node}", host)
    return (port, *impair_steps(plan.lab, (), plan.segments, (card,), plan.links))


def _port(lab: str, node: str, card: Interface, segments: dict[str, Segment], tap: bool) -> Iterable[str]:
    if card.nic is not None and card.cable is None:
        return  # the other end of the NIC's cable is outside the lab
    if card.cable is not None:
        yield f"link set dev {card.port} mtu {card.mtu}"
    else:
        yield from _plug(lab, node, card, tap)
    yield from _quiet(card.port, segments.get(card.segment), card.mtu)
    yield f"link set dev {card.port} master {card.bridge or segments[card.segment].bridge} up"


def _plug(lab: str, node: str, card: Interface, tap: bool) -> Iterable[str]:
    """Yields the lines that create a port in the core: a tap for a VM, else a veth pair
    into the light node.
    """
    if tap:
        mac = port_mac(card.address) if card.address else of_own(card.mac, 0x1A)
        yield f"tuntap add dev {card.port} mode tap vnet_hdr"
        yield f"link set dev {card.port} address {mac} mtu {card.mtu} txqueuelen {TXQUEUELEN}"
    else:
        home = f"netns {node_netns(lab, node)}"
        inside = f"peer name {card.device} address {card.mac} mtu {card.mtu} {_QUEUES} {home}"
        outside = f"name {card.port} address {port_mac(card.address)} mtu {card.mtu} {_QUEUES}"
        yield f"link add {outside} type veth {inside}"


def _tagged(card: Interface) -> Iterable[str]:
    """Yields the lines that create a VLAN interface; the priority of a socket becomes the priority in the
    tag.
    """
    yield f"link set dev {card.device} up"
    made = f"name {card.name} address {card.mac} mtu {card.mtu} type vlan id {card.vlan} {PRIORITIES}"
    yield f"link add link {card.device} {made}"


def _wire(link: Link, cards: dict[tuple[str, str], Interface]) -> str:
    """Returns the line that creates a veth pair from node to node."""
    a, b = (
        f"name {card.name} address {card.mac} mtu {card.mtu} {_QUEUES} netns {direction.netns}"
        for direction, card in (
            (link.forward, cards[link.a, link.name]),
            (link.reverse, cards[link.b, link.name]),
        )
    )
    return f"link add {a} type veth peer {b}"


def _through_core(
    lab: str, link: Link, cards: Sequence[tuple[str, Interface]], vms: Collection[str]
) -> Iterable[str]:
    """Yields the lines of a link between nodes by two bridges in the core, joined by a veth pair or a bridge
    VM: bridges, ports, the pair, the ports of the bridge VM and a half-duplex transmitter.
    """
    ways = {link.a: link.forward, link.b: link.reverse}
    ends = [(node, ways[node], card) for name in ways for node, card in cards if node == name]
    mtu = ends[0][2].mtu
    a, b = (
        f"name {way.device} address {of_own(card.mac, 0x22)} mtu {mtu} {_QUEUES}" for _, way, card in ends
    )
    wire = link.forward.enter is None
    if wire:
        yield f"link add {a} type veth peer {b}"
    for node, way, card in ends:
        bridge = f"address {of_own(card.mac, 0x1E)} mtu {mtu} type bridge stp_state 0 mcast_snooping 0"
        yield f"link add name {card.bridge} {bridge}"
        yield from _plug(lab, node, card, node in vms)
        devices = [str(card.bridge), card.port, *([way.device] if wire else [])]
        for device in devices:
            yield from _silent(device, mtu)
        yield f"link set dev {card.bridge} up"
        yield from (f"link set dev {device} master {card.bridge} up" for device in devices[1:])
    for node, card in cards:
        if node not in ways:
            yield from _port(lab, node, card, {}, True)
    yield from _shared(link, mtu)


def _end(lab: str, cards: Iterable[tuple[str, Interface]], vms: Collection[str]) -> Iterable[str]:
    """Yields the lines for this host's end of a link to a node on another host: a bridge that joins the
    node's port to the tunnel.
    """
    for node, card in cards:
        bridge = f"address {of_own(card.mac, 0x1E)} mtu {card.mtu} type bridge stp_state 0 mcast_snooping 0"
        yield f"link add name {card.bridge} {bridge}"
        yield from _plug(lab, node, card, node in vms)
        for device in (str(card.bridge), card.port):
            yield from _silent(device, card.mtu)
        yield f"link set dev {card.bridge} up"
        yield f"link set dev {card.port} master {card.bridge} up"


def _quiet(device: str, segment: Segment | None, mtu: int) -> Iterable[str]:
    if segment is None or not segment.ipv6:
        yield from _silent(device, mtu)


def _silent(device: str, mtu: int) -> Iterable[str]:
    """Yields the line that keeps a device from giving itself an IPv6 address; nothing if its MTU is too small
    for IPv6.
    """
    if mtu >= IPV6_LEAST_MTU:
        yield f"link set dev {device} addrgenmode none"
