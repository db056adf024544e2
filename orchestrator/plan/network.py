"""Plans segments, interfaces of nodes and links: allots addresses, and names both ends of every wire."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from contract.plan import Carried, Direction, Interface, Link, Segment
from contract.plan.family import family, spoken_to

from ..topology.document import File
from ..topology.expansion import Expansion, domains, implicit_link, wire_subnets
from ..topology.impairments import Impairment as FileImpairment
from ..topology.network import Link as FileLink
from ..topology.network import Segment as FileSegment
from ..topology.nodes import vlans_of
from .half_duplex import medium, with_one_transmitter
from .hardware import nics_of, with_nic
from .naming import AddressPool, InterfaceNames, core_netns, node_netns
from .netem import direction
from .vms import own_link
from .wires import Wires, addressed


@dataclass
class Network:
    """The planned network: segments, interfaces and links."""

    segments: tuple[Segment, ...]
    interfaces: dict[str, tuple[Interface, ...]]  # node -> its interfaces
    links: tuple[Link, ...] = ()
    names: InterfaceNames = field(default_factory=InterfaceNames)
    # The subnets of segments and of links between nodes, at most one of each address family.
    subnets: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def address(self, node: str) -> str:
        """Returns the address of the node's first interface."""
        return self.interfaces[node][0].address

    def address_of(self, node: str, seen_from: str) -> str:
        """Returns the address under which the node `seen_from` reaches `node`."""
        return spoken_to(self.interfaces[node], self.interfaces[seen_from])


def plan_network(model: File, names: Expansion, lab: str, cut: set[str]) -> Network:
    """Returns the network of a lab; `cut` names the nodes that the timeline disconnects from the network;
    they get a link for every interface.
    """
    core = InterfaceNames()
    subnets = {name: domain.subnets for name, domain in domains(model).items()}
    segments = tuple(
        Segment(
            name,
            core.allot(f"br-{name}"),
            subnets[name][0],
            segment.mtu,
            _ipv6(segment, subnets[name]),
            segment.stp,
            *subnets[name][1:],
        )
        for name, segment in model.segments.items()
    )
    between_nodes = wire_subnets(model, names)
    wires = Wires(model, names, between_nodes)
    network = Network(segments, {}, names=core, subnets={**subnets, **between_nodes})
    # Ends of links between segments come before the ports of nodes, so that the number of nodes does not
    # change their names.
    ends = {name: (core.allot(f"{name}-a"), core.allot(f"{name}-b")) for name in _between_segments(model)}
    cards = _interfaces(model, names, subnets, core)
    network.interfaces = {node: (*own, *wires.interfaces(node, len(own))) for node, own in cards.items()}
    network.links = tuple(_links(model, names, lab, network, ends, cut, wires))
    return network


def _ipv6(segment: FileSegment, subnets: tuple[str, ...]) -> bool:
    return segment.ipv6 or "IPv6" in map(family, subnets)


def _between_segments(model: File) -> list[str]:
    return [name for name, link in model.links.items() if set(link.between) <= set(model.segments)]


def _interfaces(
    model: File, names: Expansion, subnets: dict[str, tuple[str, ...]], core: InterfaceNames
) -> dict[str, tuple[Interface, ...]]:
    fixed = {address for node in model.nodes.values() for address in node.address}
    pools = {subnet: AddressPool(subnet, fixed) for some in subnets.values() for subnet in some}
    nics = nics_of(model)
    found: dict[str, tuple[Interface, ...]] = {}
    for node, machine in names.nodes.items():
        wanted = model.nodes[node].address if node in model.nodes else []
        cards = []
        for index, segment in enumerate(machine.segment):
            hardware = nics.get((node, segment))
            given = {} if index else {family(one): one for one in wanted}
            places = [pools[subnet] for subnet in subnets[segment]]
            addresses = [given.get(pool.family) or pool.next() for pool in places]
            outside = hardware is not None and hardware.cable is None
            port = "" if outside else core.allot(node if index == 0 else f"{node}-{index}")
            mtu = machine.mtu or model.segments[segment].mtu
            tag = vlans_of(machine).get(segment)
            name = f"eth{index}" if tag is None else f"eth{index}.{tag}"
            prefixes = [pool.network.prefixlen for pool in places]
            cards.append(with_nic(addressed(name, port, segment, addresses, prefixes, mtu), hardware))
        found[node] = tuple(cards)
    return found


def _links(
    model: File,
    names: Expansion,
    lab: str,
    network: Network,
    ends: dict[str, tuple[str, str]],
    cut: set[str],
    wires: Wires,
) -> list[Link]:
    found: list[Link] = []
    covered: set[tuple[str, str]] = set()
    for name, link in model.links.items():
        if name in ends:
            made = _segment_link(lab, name, link, ends[name], model.segments[link.between[0]].mtu)
            made = dataclasses.replace(made, trunk=_trunk(link, ends[name], network.names))
            found.append(with_one_transmitter(made, network.names) if link.duplex == "half" else made)
            continue
        if name in names.wires:
            made = wires.link(lab, name, link, network.interfaces)
            machines = any(names.nodes[node].kind == "vm" for node in names.wires[name])
            made = _through_core(made, lab, network) if machines or link.duplex == "half" else made
            found.append(with_one_transmitter(made, network.names) if link.duplex == "half" else made)
            continue
        if _only_the_port(link, model):
            continue
        for expanded in names.links[name]:
            node = names.link_node[expanded]
            card = next(c for c in network.interfaces[node] if c.segment == link.between[1])
            covered.add((node, card.name))
            ways, half = (link.forward or link.both, link.reverse or link.both), link.duplex == "half"
            found.append(_access(lab, names, network, expanded, (node, card), ways, half=half))
    for node in names.nodes:
        for index, card in enumerate(network.interfaces[node] if node in cut else ()):
            if (node, card.name) not in covered:
                expanded = implicit_link(node, index)
                found.append(_access(lab, names, network, expanded, (node, card), (None, None)))
    found += [medium(lab, name, model.segments[name], network.names) for name in names.media]
    return found


def _only_the_port(link: FileLink, model: File) -> bool:
    """Returns whether a link needs nothing but the node's port: its cable is left out (`nics: none`), nothing
    impairs it, and the file has no timeline and no capture at a link.
    """
    named = model.timeline or any(capture.at.startswith("link ") for capture in model.captures.values())
    return link.nics is None and link.model_fields_set == {"between", "nics"} and not named


def _access(
    lab: str,
    names: Expansion,
    network: Network,
    name: str,
    end: tuple[str, Interface],
    ways: tuple[FileImpairment | None, FileImpairment | None],
    *,
    half: bool = False,
) -> Link:
    """Returns a node's own link. For a VM or half duplex the link gets its own wire in the core, and the
    node's interface in `network` changes. ways: the impairments of packets from and to the node; None: no
    impairment.
    """
    node, card = end
    link = _access_link(lab, name, node, card, *ways)
    if names.nodes[node].kind != "vm" and not half:
        return link
    moved, link = own_link(lab, name, card, link, network.names)
    network.interfaces[node] = tuple(moved if c is card else c for c in network.interfaces[node])
    return with_one_transmitter(link, network.names) if half else link


def _through_core(link: Link, lab: str, network: Network) -> Link:
    """Returns a link between two nodes with its wire in the core, where both ends can share a device and a VM
    has a tap.

    Each node's interface in `network` gets a port on a bridge of its own, and the wire joins these bridges.
    """
    for node in (link.a, link.b):
        cards = network.interfaces[node]
        index, card = next((i, c) for i, c in enumerate(cards) if c.segment == link.name)
        port = network.names.allot(f"{node}-{index}" if index else node)
        moved = dataclasses.replace(card, port=port, bridge=network.names.allot(f"x-{port}"))
        network.interfaces[node] = tuple(moved if c is card else c for c in cards)
    core, a, b = core_netns(lab), network.names.allot(f"{link.name}-a"), network.names.allot(f"{link.name}-b")
    forward = Direction(link.forward.impairment, core, a, core, b, trace=link.forward.trace)
    reverse = Direction(link.reverse.impairment, core, b, core, a, trace=link.reverse.trace)
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def _segment_link(lab: str, name: str, link: FileLink, ends: tuple[str, str], mtu: int) -> Link:
    core, (a, b) = core_netns(lab), ends
    forward = direction(link.forward or link.both, mtu, (core, a), (core, b))
    reverse = direction(link.reverse or link.both, mtu, (core, b), (core, a))
    nics = (link.nics.a, link.nics.b) if link.nics else None
    return Link(name, link.between[0], link.between[1], "segments", forward, reverse, nics)


def _trunk(link: FileLink, ends: tuple[str, str], names: InterfaceNames) -> tuple[Carried, ...]:
    """Returns the pairs of segments that a link between segments carries with tags."""
    return tuple(
        Carried(vlan, a, b, names.allot(f"{ends[0]}-{vlan}"), names.allot(f"{ends[1]}-{vlan}"))
        for vlan, (a, b) in link.trunk.items()
    )


def _access_link(
    lab: str, name: str, node: str, card: Interface, out: FileImpairment | None, back: FileImpairment | None
) -> Link:
    core, inside = core_netns(lab), node_netns(lab, node)
    forward = direction(out, card.mtu, (inside, card.device), (core, card.port))
    reverse = direction(back, card.mtu, (core, card.port), (inside, card.device))
    return Link(name, node, card.segment, "access", forward, reverse)
