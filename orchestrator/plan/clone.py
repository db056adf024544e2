"""Plans new nodes like the first one of a group: free names, addresses and ports, and the steps that connect
them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from contract.plan import Direction, Interface, Link, Node, Plan, Software, Step

from .half_duplex import with_one_transmitter
from .naming import AddressPool, InterfaceNames, node_cgroup, node_mac, node_netns
from .steps import impair_steps, network_steps
from .vms import own_link


class CloneError(ValueError):
    """Raised if a group cannot be cloned; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Clone:
    """A node to add to a running lab, with the steps that connect it."""

    node: Node
    steps: tuple[Step, ...]
    links: tuple[Link, ...]  # the clone's links, with the settings of the original's


def clones(
    plan: Plan, now: Mapping[str, Mapping[str, Any]], group: str, count: int, *, idle: bool = False
) -> list[Clone]:
    """Returns `count` new nodes like the plan's first node of `group`.

    now: the nodes of the running lab, as `inspect` returns them. Software is copied unchanged, so an argument
    that contains the original's address still contains it. idle: True leaves out software that takes part in
    the scenario. Raises CloneError for an unknown group, and for a group with a NIC of the machine, with an
    end of a link between nodes, with a bridge VM, or without a free address. Without `idle`, also raises it
    for a group whose software takes part in the scenario.
    """
    model = next((node for node in plan.nodes if node.group == group), None)
    if model is None:
        known = ", ".join(dict.fromkeys(node.group for node in plan.nodes))
        raise CloneError(f'group "{group}": the lab has none of that name; its groups: {known}')
    if any(card.nic for card in model.interfaces):
        raise CloneError(f'group "{group}": has a NIC of the machine, of which there is no second; plan one')
    if model.outside:
        raise CloneError(
            f'group "{group}": reaches {model.outside[0]} outside the lab, which is for one node'
        )
    model = _idle(model) if idle else model
    if busy := [one.name for one in model.software if _in_scenario(one)]:
        raise CloneError(
            f'group "{group}": {", ".join(busy)} takes part in the scenario, and a running lab begins no '
            "other; write more nodes into the file, or leave it out of the clones with --idle"
        )
    used = [card for node in now.values() for card in node["interfaces"]]
    used += [dataclasses.asdict(card) for node in plan.nodes for card in node.interfaces]
    free = _Free(plan, used)
    names = _names(group, {*now, *(node.name for node in plan.nodes)}, count)
    return [_clone(plan, model, name, free) for name in names]


def _in_scenario(one: Software) -> bool:
    """Returns whether the software takes part in the scenario: it has a session, or the agent
    itself runs it.
    """
    return one.session is not None or one.process is None


def _idle(node: Node) -> Node:
    return dataclasses.replace(node, software=tuple(one for one in node.software if not _in_scenario(one)))


class _Free:
    """Allots addresses and interface names that are used by no node of the plan or of the running lab."""

    def __init__(self, plan: Plan, used: Iterable[Mapping[str, Any]]) -> None:
        cards = list(used)
        addresses = [one for card in cards for one in (card["address"], card.get("second")) if one]
        self._pools = {s.name: s.subnets for s in plan.segments}
        self._by_subnet = {one: AddressPool(one, addresses) for s in plan.segments for one in s.subnets}
        self.ports = InterfaceNames()
        self.ports.taken |= {card["port"] for card in cards} | {s.bridge for s in plan.segments}
        self.ports.taken |= {card["bridge"] for card in cards if card.get("bridge")}
        ways = [d for link in plan.links for d in (link.forward, link.reverse)]
        self.ports.taken |= {name for d in ways for name in (d.device, d.far_device, d.carrier)}
        self.ports.taken |= {name for tunnel in plan.tunnels for name in (tunnel.device, tunnel.bridge)}

    def card(self, model: Interface, index: int, node: str) -> Interface:
        """Returns the clone's interface for one of the original's, with a free address and port name; raises
        CloneError if no address is free or the interface is on a link between nodes.
        """
        if model.segment not in self._pools:
            raise CloneError(
                f"link {model.segment}: joins two nodes, so its ends cannot be cloned; write them in the file"
            )
        first, *second = (self._address(model.segment, subnet) for subnet in self._pools[model.segment])
        port = self.ports.allot(node if index == 0 else f"{node}-{index}")
        card = dataclasses.replace(model, port=port, address=first, mac=node_mac(first))
        return dataclasses.replace(card, second=second[0]) if second else card

    def _address(self, segment: str, subnet: str) -> str:
        try:
            return self._by_subnet[subnet].next()
        except StopIteration:
            raise CloneError(f"segment {segment}: no address of {subnet} is free; remove nodes") from None


def _names(group: str, taken: set[str], count: int) -> list[str]:
    """Returns `count` names: `group` with the numbers that follow the highest one in use; from 2 if none is
    in use.
    """
    numbers = [int(m[1]) for name in taken if (m := re.fullmatch(re.escape(group) + r"(\d+)", name))]
    first = max(numbers, default=1) + 1
    return [f"{group}{number}" for number in range(first, first + count)]


def _clone(plan: Plan, model: Node, name: str, free: _Free) -> Clone:
    """Returns the clone `name` of the node `model`, with its links and the steps on its host that
    connect it.
    """
    cards = tuple(free.card(card, index, name) for index, card in enumerate(model.interfaces))
    node = dataclasses.replace(
        model,
        name=name,
        hostname=name,
        netns=node_netns(plan.lab, name),
        cgroup=node_cgroup(plan.lab, name),
        interfaces=cards,
    )
    access = [link for link in plan.links if link.kind == "access" and link.a == model.name]
    own = [link for link in access if model.vm is not None or link.half_duplex]
    node, links = _own_links(plan, model, node, own, free)
    links += [_link(link, model, node) for link in access if link not in own]
    vms = {name} if node.vm is not None else set[str]()
    _, *wires = network_steps(plan.lab, plan.segments, {name: node.interfaces}, links, vms)
    impaired = impair_steps(plan.lab, links, plan.segments, node.interfaces, plan.links)
    steps = tuple(dataclasses.replace(step, host=node.host) for step in (*wires, *impaired))
    return Clone(node, steps, tuple(links))


def _own_links(
    plan: Plan, model: Node, node: Node, links: Iterable[Link], free: _Free
) -> tuple[Node, list[Link]]:
    """Gives the clone its own wire in the core for each of `links`, which are links of a VM or half-duplex
    links. Returns the node with changed interfaces, and the links; raises CloneError for a link through a
    bridge VM.
    """
    found: list[Link] = []
    cards = list(node.interfaces)
    for link in links:
        if link.forward.enter is not None:
            raise CloneError(
                f'group "{model.group}": its link {link.name} runs through a bridge VM, which is not cloned; '
                "write the nodes into the file, or use a host whose kernel has netem"
            )
        place = next(i for i, card in enumerate(model.interfaces) if card.segment == link.b)
        name = f"{link.name}-{node.name}"
        moved = dataclasses.replace(link, name=name, a=node.name)
        cards[place], moved = own_link(plan.lab, name, cards[place], moved, free.ports)
        moved = with_one_transmitter(moved, free.ports) if link.half_duplex else moved
        found.append(moved)
    return dataclasses.replace(node, interfaces=tuple(cards)), found


def _link(link: Link, model: Node, node: Node) -> Link:
    """Returns the original's access link with the devices of the clone."""
    cards = {old.port: new for old, new in zip(model.interfaces, node.interfaces, strict=True)}
    card = cards[link.reverse.device]

    def moved(one: Direction, *, out: bool) -> Direction:
        inside, core = node.netns, link.reverse.netns
        device, far = (card.device, card.port) if out else (card.port, card.device)
        at, to = (inside, core) if out else (core, inside)
        place = {"host": node.host, "far_host": node.host}
        return Direction(one.impairment, at, device, to, far, trace=one.trace, **place)

    forward, reverse = moved(link.forward, out=True), moved(link.reverse, out=False)
    return Link(f"{link.name}-{node.name}", node.name, link.b, "access", forward, reverse)
