"""Converts a lab's parts to placement items, and the placement of the items back to a host for each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contract.plan import Host, Link, Node

from ...language.problem import Problem as Mistake
from ...language.problem import TopologyError
from ...language.units import text_bytes
from ...software.kind import Costs
from ...topology.loading import Topology
from ...topology.together import Part, Together
from ..predict import CAPTURE_BYTES, LAB_BYTES
from .demand import NOTHING, Demand, demand
from .grow import NoRoomError
from .items import Item, Problem, Room
from .place import place
from .traffic import Traffic

MOST_LACKS = 4  # largest number of hosts that an error names
# Traffic (bit/s) that is assumed between a part and its segment, so that members of a segment stay together
# if no real traffic decides.
COMPANY_BPS = 1.0


@dataclass(frozen=True)
class Placement:
    """The host of each node, of each link between segments, and of each segment that is whole on one host;
    and the demands and traffic from which the placement was computed.
    """

    hosts: tuple[Host, ...]
    of: Mapping[Part, str]
    demands: Mapping[str, Demand]  # by node
    traffic: Traffic


def placed(
    topology: Topology,
    together: Together,
    hosts: tuple[Host, ...],
    nodes: Sequence[Node],
    links: Sequence[Link],
    costs: Mapping[str, Sequence[Costs]],
    traffic: Traffic,
) -> Placement:
    """Returns the placement of every part on one host; parts that must stay together share one. costs: the
    costs of the software by node.

    Raises TopologyError if an item fits on no host.
    """
    clocks = [host.core_mhz for host in hosts if host.core_mhz is not None]
    demands = {node.name: demand(node, costs[node.name], min(clocks, default=None)) for node in nodes}
    joints = [link for link in links if link.kind == "segments"]
    parts: list[Part] = [("node", node.name) for node in nodes] + [("link", link.name) for link in joints]
    parts += [("segment", name) for name in topology.model.segments]
    roots = [together.cluster(part) for part in parts]
    number = {root: place for place, root in enumerate(dict.fromkeys(roots))}
    items = _items(together, hosts, nodes, joints, demands, links, number)
    near = _near(together, nodes, joints, traffic, number)
    problem = Problem(items, _rooms(hosts, demands, len(topology.model.captures)), near)
    try:
        where = place(problem, _families(together, nodes, number))
    except NoRoomError as error:
        raise TopologyError([_no_room(topology, together, error, list(number)[error.item], items)]) from None
    found = {part: hosts[where[number[root]]].name for part, root in zip(parts, roots, strict=True)}
    kept = {part: host for part, host in found.items() if part[0] != "segment" or part[1] in together.whole}
    return Placement(hosts, kept, demands, traffic)


def _rooms(hosts: Sequence[Host], demands: Mapping[str, Demand], captures: int) -> list[Room]:
    """Returns the hosts' capacity for nodes, less the memory of the lab's own processes and captures, and one
    bridge port for a tunnel if there are several hosts.
    """
    own_bytes = LAB_BYTES + captures * CAPTURE_BYTES
    known = [host.cores for host in hosts if host.cores is not None]
    # a host with an unknown number of cores counts with the mean of the others
    usual = sum(known) / len(known) if known else 1.0
    weights = [usual if host.cores is None else host.cores for host in hosts]
    work = sum(one.work for one in demands.values())
    spare = 1 if len(hosts) > 1 else 0  # one port for a tunnel
    return [
        Room(
            host.name,
            host.cores,
            host.cores * host.core_mhz if host.cores is not None and host.core_mhz is not None else None,
            None if host.memory_bytes is None else host.memory_bytes - own_bytes,
            host.bridge_ports - spare,
            work * weight / sum(weights),
        )
        for host, weight in zip(hosts, weights, strict=True)
    ]


def _items(
    together: Together,
    hosts: Sequence[Host],
    nodes: Sequence[Node],
    joints: Sequence[Link],
    demands: Mapping[str, Demand],
    links: Sequence[Link],
    number: Mapping[Part, int],
) -> list[Item]:
    """Returns one item for each cluster of parts: its resources, bridge ports, allowed hosts and sides of
    `apart` rules.
    """
    total = [NOTHING] * len(number)
    ports: list[Counter[str]] = [Counter() for _ in number]
    sides: list[dict[int, int]] = [{} for _ in number]
    segments = {name for link in joints for name in (link.a, link.b)} | set(together.model.segments)
    for node in nodes:
        own = number[together.cluster(("node", node.name))]
        total[own] += demands[node.name]
        ports[own].update(card.segment for card in node.interfaces if card.port and card.segment in segments)
    for link in joints:
        ports[number[together.cluster(("link", link.name))]].update((link.a, link.b))
    for link in links:
        if link.kind == "medium":
            # The stations of the medium's proof need two ports.
            ports[number[together.cluster(("segment", link.a))]].update({link.a: 2})
    for rule, apart in enumerate(together.apart):
        for node_name, side in apart.sides.items():
            sides[number[together.cluster(("node", node_name))]][rule] = side
    place_of = {host.name: place for place, host in enumerate(hosts)}
    allowed = {
        root: tuple(sorted(place_of[name] for name in names)) for root, names in together.allowed.items()
    }
    return [
        Item(total[place], ports[place], allowed.get(root), sides[place]) for root, place in number.items()
    ]


def _near(
    together: Together,
    nodes: Sequence[Node],
    joints: Sequence[Link],
    traffic: Traffic,
    number: Mapping[Part, int],
) -> list[dict[int, float]]:
    """Returns for each item its traffic with other items (bit/s): the traffic of flows, and a little with its
    segments and wires, so that connected parts stay together even without traffic.
    """
    near: list[dict[int, float]] = [{} for _ in number]

    def join(a: Part, b: Part, bps: float) -> None:
        one, other = number[together.cluster(a)], number[together.cluster(b)]
        if one != other:
            near[one][other] = near[one].get(other, 0.0) + bps
            near[other][one] = near[other].get(one, 0.0) + bps

    for (a, b), bps in traffic.items():
        join(a, b, bps)
    for node in nodes:
        for card in node.interfaces:
            if card.segment in together.model.segments:
                join(("node", node.name), ("segment", card.segment), COMPANY_BPS)
    joined = Counter(name for link in joints for name in (link.a, link.b))
    # the link is placed with the segment that has fewer links, and that is on fewer hosts
    for link in joints:
        edge, hub = sorted((link.a, link.b), key=joined.__getitem__)
        join(("link", link.name), ("segment", edge), 2 * COMPANY_BPS)
        join(("link", link.name), ("segment", hub), COMPANY_BPS)
    for one, other in together.names.wires.values():
        join(("node", one), ("node", other), COMPANY_BPS)
    return near


def _families(together: Together, nodes: Sequence[Node], number: Mapping[Part, int]) -> list[str]:
    """Returns the family of each item, to keep together: the segment of its node's first interface, else the
    node's group.
    """
    found = [""] * len(number)
    for node in nodes:
        first = node.interfaces[0].segment if node.interfaces else ""
        known = first in together.model.segments
        found[number[together.cluster(("node", node.name))]] = f"segment {first}" if known else node.group
    return found


def _no_room(
    topology: Topology, together: Together, error: NoRoomError, part: Part, items: Sequence[Item]
) -> Mistake:
    """Returns the error for an item that fits on no host; part: one of the parts of the item."""
    item = items[error.item]
    section, name = {"node": "nodes", "link": "links", "segment": "segments"}[part[0]], part[1]
    if part[0] == "node" and together.names.group_of[name] in together.names.groups:
        section, name = "groups", together.names.group_of[name]
    lacks = [f"{load.room.name}: {load.lack(item)}" for load in error.loads]
    more = f", and {len(lacks) - MOST_LACKS} more" if len(lacks) > MOST_LACKS else ""
    needs = f"{text_bytes(item.demand.memory_bytes)}"
    if item.demand.cores or item.demand.mhz:
        needs += f", {item.demand.cores:g} cores and {item.demand.mhz:g} MHz reserved"
    rule = f"fits on no host beside the others (it needs {needs}): {'; '.join(lacks[:MOST_LACKS])}{more}"
    return topology.document.problem((section, name), part[1], rule, "name more hosts, or ask less of them")
