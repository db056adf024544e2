"""Expands groups into nodes, and resolves links, broadcast domains and subnets of links."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contract.plan.family import FAMILIES, Family, Subnet, family, overlap

from .document import File
from .network import Link
from .nodes import Machine
from .selection import members


@dataclass(frozen=True)
class Expansion:
    """The names of a file after expansion. A single node is its own group, but is not in `groups`."""

    # name -> description of every node, single nodes first, in the order of the file
    nodes: dict[str, Machine]
    group_of: dict[str, str]
    index_of: dict[str, int]  # node -> number within its group, from 1
    groups: dict[str, tuple[str, ...]]
    links: dict[str, tuple[str, ...]]  # name of a link in the file -> names of the lab's links
    link_node: dict[str, str]  # name of an access link of the lab -> its node
    wires: dict[str, tuple[str, str]]  # name of a link between two nodes -> the two nodes
    media: tuple[str, ...]  # half-duplex segments; each is also a link of the lab by this name


def expand(model: File) -> Expansion:
    """Returns the expansion of a model; omits invalid references, since the checks report them."""
    groups = {name: members(name, group.count) for name, group in model.groups.items()}
    nodes: dict[str, Machine] = dict(model.nodes)
    group_of, index_of = {name: name for name in nodes}, dict.fromkeys(nodes, 1)
    for name, names in groups.items():
        for index, member in enumerate(names, 1):
            nodes[member], group_of[member], index_of[member] = model.groups[name], name, index
    links, link_node = _links(model, groups)
    wires = {
        name: (link.between[0], link.between[1])
        for name, link in model.links.items()
        if nodes.keys() >= set(link.between)
    }
    media = tuple(name for name, segment in model.segments.items() if segment.duplex == "half")
    return Expansion(nodes, group_of, index_of, groups, links, link_node, wires, media)


def _links(
    model: File, groups: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    links: dict[str, tuple[str, ...]] = {}
    link_node: dict[str, str] = {}
    for name, link in model.links.items():
        first = link.between[0]
        access = is_access(model, link)
        of_group = access and first in groups
        names = {f"{name}-{member}": member for member in groups[first]} if of_group else {name: first}
        links[name] = tuple(names)
        if access:
            link_node.update(names)
    return links, link_node


def is_access(model: File, link: Link) -> bool:
    """Returns whether the link connects a node or group to a segment."""
    return (link.between[0] in model.nodes or link.between[0] in model.groups) and (
        link.between[1] in model.segments
    )


def implicit_link(node: str, index: int) -> str:
    """Returns the name of the link behind a node's eth<index> if the file declares none but the timeline cuts
    the node off.
    """
    return f"access-{node}-{index}" if index else f"access-{node}"


@dataclass(frozen=True)
class Domain:
    """Segments that links join, which together are one IP subnet."""

    segments: tuple[str, ...]
    # the subnets of the first of its segments that has any: one, or one of each address family
    subnets: tuple[str, ...]
    agrees: bool = True  # whether no other segment of the domain has other subnets


def domains(model: File) -> dict[str, Domain]:
    """Returns the domain of each segment."""
    root = {name: name for name in model.segments}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for link in model.links.values():
        for a, b in (link.between, *link.trunk.values()):
            if a in root and b in root:
                root[find(b)] = find(a)
    parts: dict[str, list[str]] = {}
    for name in root:
        parts.setdefault(find(name), []).append(name)
    return {name: _domain(model, parts[find(name)]) for name in root}


def _domain(model: File, names: list[str]) -> Domain:
    given = [tuple(model.segments[name].subnet) for name in names if model.segments[name].subnet]
    return Domain(tuple(names), given[0] if given else (), len(set(given)) <= 1)


def hosts(subnet: str) -> int:
    """Returns the number of usable addresses of a subnet. IPv6 has no broadcast address, but it has one
    address for any router (RFC 4291, 2.6.1).
    """
    network = ipaddress.ip_network(subnet)
    return network.num_addresses - (2 if network.version == 4 else 1)


WIRE_PREFIX: dict[Family, int] = {"IPv4": 30, "IPv6": 126}


class NoSubnetError(Exception):
    """Raised if no subnet is free for a link between two nodes; the text is the link's name."""


def wire_subnets(model: File, names: Expansion) -> dict[str, tuple[str, ...]]:
    """Returns the subnets of each link between two nodes: its own, or else the next free small one of each
    family that `_wire_families` returns. NoSubnetError if none is free.
    """
    given = [tuple(s.subnet) for s in model.segments.values()]
    given += [tuple(link.subnet) for link in model.links.values()]
    known = sorted({subnet for subnets in given for subnet in subnets})
    networks = [ipaddress.ip_network(subnet) for subnet in known]
    free = {
        kind: _free([one for one in networks if family(str(one)) == kind], kind)
        for kind in _wire_families(model, given)
    }
    found: dict[str, tuple[str, ...]] = {}
    for name in names.wires:
        own = tuple(model.links[name].subnet)
        subnets = own or tuple(str(one) for some in free.values() if (one := next(some, None)) is not None)
        if len(subnets) < (1 if own else len(free)):
            raise NoSubnetError(name)
        found[name] = subnets
    return found


def _wire_families(model: File, given: Sequence[tuple[str, ...]]) -> tuple[Family, ...]:
    """Returns the families of links between nodes: those of `routing`, if it states them. Otherwise both
    families, in the order of the first list, if a segment or link has subnets of both. Otherwise IPv6 if all
    subnets of the file are IPv6, else IPv4.
    """
    wanted = model.routing.family if model.routing else None
    lists = [tuple(map(family, subnets)) for subnets in given if len(subnets) > 1]
    if wanted == "both" or (wanted is None and lists):
        return lists[0] if lists else FAMILIES
    known = [family(subnet) for subnets in given for subnet in subnets]
    six = bool(known) and set(known) == {"IPv6"}
    return ("IPv6",) if wanted == "ipv6" or (wanted is None and six) else ("IPv4",)


def _free(taken: list[Subnet], kind: Family) -> Iterator[Subnet]:
    """Yields free small subnets: in 10.255.0.0/16, then 10.254.0.0/16 and so on; for IPv6 in fdff::/64, then
    fdfe::/64.
    """
    for block in range(255, -1, -1):
        text = f"10.{block}.0.0/16" if kind == "IPv4" else f"fd{block:02x}::/64"
        around: Subnet = ipaddress.ip_network(text)
        near = [network for network in taken if overlap(network, around)]
        if any(network.prefixlen <= around.prefixlen for network in near):
            continue
        for subnet in around.subnets(new_prefix=WIRE_PREFIX[kind]):
            if not any(overlap(network, subnet) for network in near):
                yield subnet
