"""Writes a topology file from an imported network; makes its plan to find the interface names and addresses
that vNET assigns.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from contract.plan import Plan
from contract.plan.family import DEFAULT, EVERYWHERE, faces, family
from vnet.topology import Topology

from ..language.problem import Problem, TopologyError
from ..plan.build import make_plan
from ..software.registry import KINDS
from ..topology.loading import parse
from .bridging import bridged
from .keeping import keep_addresses
from .network import End, Impairments, Lan, Machine, Network, Probe, Route, Wire
from .probes import expectations, pings_of
from .settling import settle, unplaced
from .subnets import address_of, addresses_of, has_both, joined, named_wires, overlap, subnets_of

HOLD, DRAIN = "10 s", "1 s"


@dataclass(frozen=True)
class Written:
    """The text of a topology file, a line on each part that was changed, and its problems."""

    text: str
    changed: tuple[str, ...]
    problems: tuple[Problem, ...] = ()  # the reasons why `vnet check` refuses the text, which is then a draft


def write(network: Network, file: str = "") -> Written:
    """Returns the topology file; with problems, and as a draft without routes and software, if the network is
    no valid lab as it is. Changes the network.

    `file` is the file's future name, for the problems; "" stands for NAME.yaml. Raises TopologyError if no
    machine is on a network, or if a machine has two interfaces on one LAN.
    """
    _insist_single(network)
    settle(network)
    bridged(network)
    changed = [*network.changed, *sorted(_alone(network))]
    unplaced(network)
    _insist_once(network)
    _spanning(network, changed)
    _best(network, changed)
    for wire in network.wires:
        _ordered(network, wire)
    keep_addresses(network, dict(named_wires(network)), addresses_of)
    subnets = dict(subnets_of(network, changed))
    file = file or f"{network.name}.yaml"
    bare = _topology(network, subnets)
    both = any(
        name not in subnets and has_both(network, list(wire.ends)) for name, wire in named_wires(network)
    )
    if both:
        bare.set(routing={"family": "both"})
    draft = _text(network, bare)
    try:
        return _planned(network, bare, changed, file, {"family": "both"} if both else {})
    except TopologyError as error:
        problems = tuple(_placed(network, problem) for problem in error.problems)
        return Written(draft, tuple(changed), problems)


def _text(network: Network, topology: Topology) -> str:
    return f"# From {network.tool}; `vnet explain KEY` says what a key means.\n{topology.yaml()}"


def _checked(network: Network, topology: Topology, file: str) -> Plan:
    return make_plan(parse(file, _text(network, topology).encode()))


def _planned(
    network: Network, bare: Topology, changed: list[str], file: str, routing: dict[str, str]
) -> Written:
    """Adds routes and software to the bare topology, with the names and addresses that its plan has, and
    returns it. Adds lines to `changed`. routing: keys of `routing` that stay. Raises TopologyError if a plan
    cannot be made.
    """
    no_routes = {"by": "none", **routing} if routing else "none"
    plan = _checked(network, bare, file)
    names, addresses = _as_planned(network, plan)
    changed += [f"address {old} is {new} here" for old, new in addresses.items() if "/" not in old]
    changed += _second(network)
    changed += _nowhere(network, plan, addresses)
    for machine in network.machines.values():
        _completed(bare, machine, names[machine.name], addresses, pings_of(network, plan, machine.name))
    if network.probes:
        bare.set(expect=expectations(network, plan))
    routed = len(plan.segments) + len(plan.links) > 1
    software = any(machine.kind or machine.software for machine in network.machines.values())
    if software or (network.keeps_routes and routed):
        bare.set(routing=no_routes)
    elif network.has_routes:
        if without := _without_address(network):
            said = f"{', '.join(without)[:100]}: no address in the file on some interface"
            changed.append(f"{said}: addresses {'and routes ' if routed else ''}are the plan's")
        elif routed:
            bare.set(routing=no_routes)
    _checked(network, bare, file)
    return Written(_text(network, bare), tuple(changed))


def _without_address(network: Network) -> list[str]:
    """Returns the names of machines with an interface on a wire or LAN that has no address in the file."""
    ends = [end for wire in network.wires for end in wire.ends]
    ends += [end for lan in network.lans.values() for end in lan.members]
    return sorted({end[0] for end in ends if address_of(network, end) is None})


def _placed(network: Network, problem: Problem) -> Problem:
    """Returns the problem with the line of the original file that it comes from, if that is known."""
    section, _, rest = problem.path.partition(".")
    name = rest.partition(".")[0].partition("[")[0]
    lines = {f"l{number}": line for number, line in enumerate(network.lines, 1)}
    found: dict[str, Mapping[str, Machine | Wire | Lan]] = {
        "links": {**dict(named_wires(network)), **lines}, "segments": network.lans, "nodes": network.machines,
    }  # fmt: skip
    one = found.get(section, {}).get(name)
    if one is None or one.origin is None or not one.origin.line:
        return problem
    remedy = f"{problem.remedy} ({problem.file}:{problem.line}, which is written)"
    return Problem(one.origin.file, one.origin.line, problem.path, problem.value, problem.rule, remedy)


def _spanning(network: Network, changed: list[str]) -> None:
    """Gives a spanning tree to all segments that links join if one of them has it, and reports those that
    gain it; removes it from any other segment.
    """
    for lans in joined(network):
        if len(lans) > 1 and any(lan.stp for lan in lans):
            without = [lan.name for lan in lans if not lan.stp]
            if without:
                changed.append(
                    f"{', '.join(without)}: has a spanning tree here, as the segments it is joined to"
                )
            for lan in lans:
                lan.stp = True
        else:
            for lan in lans:
                lan.stp = False  # a single bridge has no loop to break


def _best(network: Network, changed: list[str]) -> None:
    """Keeps, of several routes to one subnet, that with the lowest metric, and reports the others."""
    for machine in network.machines.values():
        best: dict[tuple[str, str], Route] = {}
        for route in sorted(machine.routes, key=lambda one: one.metric):
            if best.setdefault(route.place, route) is not route:
                said = f"{machine.name}: the route to {route.to} by {route.via}"
                changed.append(f"{said}, of a higher metric ({route.metric}), is not here")
        machine.routes = [route for route in machine.routes if best[route.place] is route]
        if len({to for to, _ in best}) < len(best):  # one default route for each address family
            machine.routes = [
                replace(route, to=EVERYWHERE[family(route.via)]) if route.to == DEFAULT else route
                for route in machine.routes
            ]


def _topology(network: Network, subnets: dict[str, list[str]]) -> Topology:
    """Returns a topology of machines, wires and LANs, without routes and software; a link that is down gets
    an event that takes it down at the start of the hold.
    """
    made = Topology(network.name, description=f"Imported from {network.tool}.")
    for lan in network.lans.values():
        made.segment(
            lan.name,
            _one_or_both(subnets[lan.name]),
            **({"mtu": lan.mtu} if lan.mtu else {}),
            **({"stp": True} if lan.stp else {}),
        )
    for number, line in enumerate(network.lines, 1):
        (first, _), (second, _) = line.ends
        turned = first in network.lans and second not in network.lans
        sides = _turned(line.impairments) if turned else line.impairments
        first, second = (second, first) if turned else (first, second)
        made.link(f"l{number}", first, second, **sides)
        if line.down:
            made.event("hold", link_down=f"l{number}")
    for machine in network.machines.values():
        segments = [
            lan.name for lan in network.lans.values() for node, _ in lan.members if node == machine.name
        ]
        keys: dict[str, object] = {"forward": True} if machine.forward else {}
        if segments and (fixed := _on(network, machine.name, segments[0], subnets[segments[0]])):
            keys["address"] = _one_or_both(fixed)
        keys |= machine.keys
        made.node(machine.name, segments[0] if len(segments) == 1 else segments or None, **keys)
    for name, wire in named_wires(network):
        keys = {key: value for key, value in (("mtu", wire.mtu), ("cost", wire.cost)) if value}
        (first, _), (second, _) = wire.ends
        given = {"subnet": _one_or_both(subnets[name])} if name in subnets else {}
        made.link(name, first, second, **given, **keys, **wire.impairments)
        if wire.down:
            made.event("hold", link_down=name)
    return made.phases(hold=HOLD, drain=DRAIN)


def _one_or_both(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts


def _on(network: Network, machine: str, lan: str, subnets: list[str]) -> list[str]:
    """Returns the machine's addresses on a LAN that are in one of the LAN's subnets."""
    end = next(end for end in network.lans[lan].members if end[0] == machine)
    inside = [ipaddress.ip_network(subnet) for subnet in subnets]
    return [str(one.ip) for one in addresses_of(network, end) if any(one.ip in subnet for subnet in inside)]


def _ordered(network: Network, wire: Wire) -> None:
    """Puts the end with the lower address first, and swaps the directions of its impairments with it, because
    plans give out addresses from the lowest. Does nothing if an end has no address.
    """
    first, second = (address_of(network, end) for end in wire.ends)
    if first and second and first.version == second.version and int(second.ip) < int(first.ip):
        wire.ends = (wire.ends[1], wire.ends[0])
        if len({"forward", "reverse"} & wire.impairments.keys()):
            wire.impairments = _turned(wire.impairments)


def _turned(impairments: Impairments) -> Impairments:
    """Returns the impairments of the same wire, seen from its other end."""
    turned = {"forward": "reverse", "reverse": "forward", "both": "both"}
    return {turned[side]: value for side, value in impairments.items()}


def _insist_single(network: Network) -> None:
    """Raises TopologyError if a machine's interface is the end of two links, or is on a link and a LAN."""
    places = [(wire.origin, end) for wire in network.wires for end in wire.ends]
    places += [(lan.origin, end) for lan in network.lans.values() for end in lan.members]
    seen: set[End] = set()
    problems = []
    for origin, (node, port) in places:
        if (node, port) in seen:
            file, line = (origin.file, origin.line) if origin else (network.source or network.tool, 0)
            rule, remedy = "is an interface with two links", "give each link an interface of its own"
            problems.append(Problem(file, line, "", f"{node}:{port}", rule, remedy))
        seen.add((node, port))
    if problems:
        raise TopologyError(problems)


def _insist_once(network: Network) -> None:
    """Raises TopologyError if a machine has two interfaces on one LAN, since a node has one on a segment."""
    twice = sorted(
        f"{node} ({lan.name})"
        for lan in network.lans.values()
        for node in {node for node, _ in lan.members}
        if sum(member == node for member, _ in lan.members) > 1
    )
    if twice:
        rule = "has two interfaces on one network, and a node has one on a segment"
        remedy = "take one of the links away, or write two networks"
        raise TopologyError(
            [Problem(network.source or network.tool, 0, one, "", rule, remedy) for one in twice]
        )


def _second(network: Network) -> Iterator[str]:
    """Yields a line for each machine on its additional addresses, which are dropped since an interface has
    one address of each family.
    """
    for machine in network.machines.values():
        others = [
            f"{text} ({port})"
            for port, given in machine.addresses.items()
            for text in given
            if ipaddress.ip_interface(text) not in addresses_of(network, (machine.name, port))
        ]
        if others:
            said = "an interface has one address of each family here"
            yield f"{machine.name}: {said}: without {', '.join(others)}"


def _alone(network: Network) -> Iterator[str]:
    """Removes machines without any connection and the probes from or to them, and yields a line on each.
    Raises TopologyError if no machine remains.
    """
    ends = [end for lan in network.lans.values() for end in lan.members]
    joined = {node for wire in network.wires for node, _ in wire.ends} | {node for node, _ in ends}
    for name in network.machines.keys() - joined:
        del network.machines[name]
        yield f"{name} is on no network of the lab: left out"
    for probe in [one for one in network.probes if not {one.source, one.target} <= joined]:
        network.probes.remove(probe)
        yield f"{probe.name}: to be checked by hand: {_claim(probe)}, of which one is on no network"
    if not network.machines:
        rule, remedy = "has no machines on networks", "name a file with machines that links join"
        raise TopologyError([Problem(network.source or network.tool, 0, "", "", rule, remedy)])


def _claim(probe: Probe) -> str:
    return f"{probe.source} {'never reaches' if probe.fails else 'reaches'} {probe.target}"


def _as_planned(network: Network, plan: Plan) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Returns the planned interface names of each machine, and a map from changed addresses and subnets to
    planned ones.
    """
    names: dict[str, dict[str, str]] = {name: {} for name in network.machines}
    others: dict[str, str] = {}
    cards = {(node.name, card.segment): card for node in plan.nodes for card in node.interfaces}
    places = [*((name, list(wire.ends)) for name, wire in named_wires(network))]
    places += [(lan.name, lan.members) for lan in network.lans.values()]
    for name, ends in places:
        for node, port in ends:
            card = cards[node, name]
            names[node][port] = card.name
            planned = [ipaddress.ip_interface(f"{face.address}/{face.prefix}") for face in card.faces]
            for was in addresses_of(network, (node, port)):
                now = next((one for one in planned if one.version == was.version), planned[0])
                if was.ip != now.ip:
                    others[str(was.ip)] = str(now.ip)
                if was.network != now.network:
                    others[str(was.network)] = str(now.network)
    return names, others


def _nowhere(network: Network, plan: Plan, addresses: dict[str, str]) -> list[str]:
    """Removes routes that lead to no subnet of the lab, such as a router's `lo`, and returns a line on
    each.
    """
    cards = (card for node in plan.nodes for card in faces(node.interfaces))
    subnets = {ipaddress.ip_interface(f"{card.address}/{card.prefix}").network for card in cards}
    gone = []
    for machine in network.machines.values():
        for route in list(machine.routes):
            to = addresses.get(route.to, route.to)
            if to != "default" and not any(overlap(ipaddress.ip_network(to), one) for one in subnets):
                machine.routes.remove(route)
                gone.append(f"{machine.name} has no route to {route.to}: no subnet of the lab is there")
    return gone


def _completed(
    topology: Topology,
    machine: Machine,
    names: dict[str, str],
    addresses: dict[str, str],
    pings: dict[str, object],
) -> None:
    """Adds the node's routes and software, with the planned names and addresses, and its pings."""
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
    if pings:
        keys["software"] = {**cast(dict[str, object], keys.get("software", {})), **pings}
    topology.change("nodes", machine.name, **keys)
