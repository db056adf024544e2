"""A topology file from a network of another tool: planned once for its names and addresses here."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from contract.plan import Plan
from vnet.topology import Topology

from ..language.problem import Problem, TopologyError
from ..plan.build import make_plan
from ..software.registry import KINDS
from ..topology.loading import parse
from .network import End, Impairments, Lan, Machine, Network, Wire

SHORTEST_PREFIX, LONGEST_PREFIX = 16, 30  # of IPv4: what `subnet:` takes
HOLD, DRAIN = "10 s", "1 s"


@dataclass(frozen=True)
class Written:
    """The file's text, and what of the network became something else in it, a line each."""

    text: str
    changed: tuple[str, ...]


def write(network: Network) -> Written:
    """The topology file; TopologyError where what it describes cannot be one."""
    changed = [*network.changed, *sorted(_alone(network))]
    _insist_once(network)
    for wire in network.wires:
        _ordered(network, wire)
    subnets = dict(_subnets(network, changed))
    bare = _topology(network, subnets)
    plan = make_plan(parse(f"{network.name}.yaml", bare.yaml().encode()))
    names, addresses = _as_planned(network, plan)
    changed += [f"address {old} is {new} here" for old, new in addresses.items() if "/" not in old]
    changed += _second(network)
    changed += _nowhere(network, plan, addresses)
    for machine in network.machines.values():
        _completed(bare, machine, names[machine.name], addresses)
    if any(machine.kind or machine.software for machine in network.machines.values()):
        bare.set(routing="none")
    text = f"# From {network.tool}; `vnet explain KEY` says what a key means.\n{bare.yaml()}"
    make_plan(parse(f"{network.name}.yaml", text.encode()))
    return Written(text, tuple(changed))


def _topology(network: Network, subnets: dict[str, str]) -> Topology:
    """Machines, wires and LANs, without what runs on them."""
    made = Topology(network.name, description=f"Imported from {network.tool}.")
    for lan in network.lans.values():
        made.segment(lan.name, subnets[lan.name])
    for number, line in enumerate(network.lines, 1):
        (first, _), (second, _) = line.ends
        turned = first in network.lans and second not in network.lans
        sides = _turned(line.impairments) if turned else line.impairments
        first, second = (second, first) if turned else (first, second)
        made.link(f"l{number}", first, second, **sides)
    for machine in network.machines.values():
        segments = [
            lan.name for lan in network.lans.values() for node, _ in lan.members if node == machine.name
        ]
        keys: dict[str, object] = {"forward": True} if machine.forward else {}
        if segments and (address := _on(network, machine.name, segments[0], subnets[segments[0]])):
            keys["address"] = address
        made.node(machine.name, segments[0] if len(segments) == 1 else segments or None, **keys)
    for name, wire in _named(network):
        keys = {"mtu": wire.mtu} if wire.mtu else {}
        (first, _), (second, _) = wire.ends
        given = {"subnet": subnets[name]} if name in subnets else {}
        made.link(name, first, second, **given, **keys, **wire.impairments)
    return made.phases(hold=HOLD, drain=DRAIN)


def _on(network: Network, machine: str, lan: str, subnet: str) -> str | None:
    """The machine's own address on a LAN: one may be fixed, on the first."""
    end = next(end for end in network.lans[lan].members if end[0] == machine)
    address = _address(network, end)
    return None if address is None or str(address.network) != subnet else str(address.ip)


def _named(network: Network) -> Iterator[tuple[str, Wire]]:
    """Wires by names of their ends; of several between the same two with a number."""
    taken: set[str] = set()
    for wire in network.wires:
        stem = "-".join(node for node, _ in wire.ends)[:34].rstrip("-")
        name = next(n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in taken)
        taken.add(name)
        yield name, wire


def _subnets(network: Network, changed: list[str]) -> Iterator[tuple[str, str]]:
    """The subnet of each wire and LAN, from its addresses; a LAN without addresses gets a free one."""
    for name, wire in _named(network):
        if (subnet := _common(network, list(wire.ends), name, changed)) is not None:
            yield name, subnet
    for number, lans in enumerate(_joined(network)):
        members = [end for lan in lans for end in lan.members]
        subnet = _common(network, members, lans[0].name, changed) or _free(number)
        yield from ((lan.name, subnet) for lan in lans)


def _free(number: int) -> str:
    """A subnet for a LAN that has none."""
    return f"10.{200 + number}.0.0/16" if number < 50 else f"10.{250 + number // 256}.{number % 256}.0/24"


def _joined(network: Network) -> list[list[Lan]]:
    """LANs that lines join are one subnet."""
    group = {name: [lan] for name, lan in network.lans.items()}
    for line in network.lines:
        a, b = (group.get(node) for node, _ in line.ends)
        if a is not None and b is not None and a is not b:
            a += b
            group |= {lan.name: a for lan in b}
    return list({id(lans): lans for lans in group.values()}.values())


def _ordered(network: Network, wire: Wire) -> None:
    """The end with the lower address first: addresses are given out from the lowest."""
    first, second = (_address(network, end) for end in wire.ends)
    if first and second and first.version == second.version and int(second.ip) < int(first.ip):
        wire.ends = (wire.ends[1], wire.ends[0])
        if len({"forward", "reverse"} & wire.impairments.keys()):
            wire.impairments = _turned(wire.impairments)


def _turned(impairments: Impairments) -> Impairments:
    """The impairments of the same wire, seen from its other end."""
    turned = {"forward": "reverse", "reverse": "forward", "both": "both"}
    return {turned[side]: value for side, value in impairments.items()}


Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _address(network: Network, end: End) -> Interface | None:
    """The end's address: of IPv4 where it has one."""
    node, port = end
    given = [ipaddress.ip_interface(text) for text in network.machines[node].addresses.get(port, ())]
    return next((one for one in given if one.version == 4), given[0] if given else None)


def _insist_once(network: Network) -> None:
    """TopologyError where a machine has two interfaces on one LAN: a node has one on a segment."""
    twice = sorted(
        f"{node} ({lan.name})"
        for lan in network.lans.values()
        for node in {node for node, _ in lan.members}
        if sum(member == node for member, _ in lan.members) > 1
    )
    if twice:
        rule = "has two interfaces on one network, and a node has one on a segment"
        remedy = "take one of the links away, or write two networks"
        raise TopologyError([Problem(network.tool, 0, one, "", rule, remedy) for one in twice])


def _second(network: Network) -> Iterator[str]:
    """Addresses of theirs that have no place: an interface has one from the plan."""
    for machine in network.machines.values():
        others = [
            f"{text} ({port})"
            for port, given in machine.addresses.items()
            for text in given
            if ipaddress.ip_interface(text) != _address(network, (machine.name, port))
        ]
        if others:
            yield f"{machine.name}: an interface has one address here: without {', '.join(others)}"


def _alone(network: Network) -> Iterator[str]:
    """Takes machines away that nothing joins to another."""
    ends = [end for lan in network.lans.values() for end in lan.members]
    joined = {node for wire in network.wires for node, _ in wire.ends} | {node for node, _ in ends}
    for name in network.machines.keys() - joined:
        del network.machines[name]
        yield f"{name} is on no network of the lab: left out"
    if not network.machines:
        rule, remedy = "has no machines on networks", "name a file with machines that links join"
        raise TopologyError([Problem(network.tool, 0, "", "", rule, remedy)])


def _common(network: Network, ends: list[End], name: str, changed: list[str]) -> str | None:
    found = {address.network for end in ends if (address := _address(network, end)) is not None}
    if not found:
        return None
    if len(found) > 1:
        said = ", ".join(sorted(str(one) for one in found))
        changed.append(f"{name}: its ends are in {said}; it has a subnet of its own here")
        return None
    (subnet,) = found
    if subnet.version == 4 and not SHORTEST_PREFIX <= subnet.prefixlen <= LONGEST_PREFIX:
        size = "small" if subnet.prefixlen > LONGEST_PREFIX else "large"
        changed.append(f"{name}: {subnet} is too {size} for a subnet here; it has one of its own")
        return None
    return str(subnet)


def _as_planned(network: Network, plan: Plan) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """By machine its interfaces' names here; and addresses and subnets that are others here."""
    names: dict[str, dict[str, str]] = {name: {} for name in network.machines}
    others: dict[str, str] = {}
    cards = {(node.name, card.segment): card for node in plan.nodes for card in node.interfaces}
    places = [*((name, list(wire.ends)) for name, wire in _named(network))]
    places += [(lan.name, lan.members) for lan in network.lans.values()]
    for name, ends in places:
        for node, port in ends:
            card = cards[node, name]
            names[node][port] = card.name
            was = _address(network, (node, port))
            if was is None:
                continue
            now = ipaddress.ip_interface(f"{card.address}/{card.prefix}")
            if was.ip != now.ip:
                others[str(was.ip)] = str(now.ip)
            if was.network != now.network:
                others[str(was.network)] = str(now.network)
    return names, others


def _nowhere(network: Network, plan: Plan, addresses: dict[str, str]) -> list[str]:
    """Takes routes away that lead to no subnet of the lab, to a router's own `lo` for example."""
    cards = (card for node in plan.nodes for card in node.interfaces)
    subnets = {ipaddress.ip_interface(f"{card.address}/{card.prefix}").network for card in cards}
    gone = []
    for machine in network.machines.values():
        for route in list(machine.routes):
            to = addresses.get(route.to, route.to)
            if to != "default" and not any(_overlap(ipaddress.ip_network(to), one) for one in subnets):
                machine.routes.remove(route)
                gone.append(f"{machine.name} has no route to {route.to}: no subnet of the lab is there")
    return gone


Subnet = ipaddress.IPv4Network | ipaddress.IPv6Network


def _overlap(a: Subnet, b: Subnet) -> bool:
    return a.version == b.version and a.overlaps(b)


def _completed(
    topology: Topology, machine: Machine, names: dict[str, str], addresses: dict[str, str]
) -> None:
    """The node's routes and software, with names and addresses as they are here."""
    keys: dict[str, object] = {}
    if machine.routes:
        keys["routes"] = [
            {"to": addresses.get(r.to, r.to), "via": addresses.get(r.via, r.via)} for r in machine.routes
        ]
    if machine.kind is not None:
        foreign = KINDS[machine.kind].foreign
        assert foreign is not None, "a reader names kinds that take programs over"
        software = foreign.software(machine.config, names, addresses)
        keys["software"] = {"router" if foreign.forwards else "program": software}
    elif machine.software:
        keys["software"] = machine.software
    topology.change("nodes", machine.name, **keys)
