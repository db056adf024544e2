"""Moves netem of a finished plan into bridge VMs, for a host whose kernel has no netem."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from contract.plan import Direction, Event, Interface, Link, Node, Plan, Vm

from .. import queueing
from ..language.problem import TopologyError
from ..topology.loading import problem_in
from .capture_point import capture_point
from .naming import bridge_vm_macs, core_netns, node_cgroup, node_netns
from .predict import predictions
from .steps import impair_steps, network_steps
from .vms import BUILTIN, memory

GROUP = "netem"  # group name of the bridge VMs in tables and figures


def with_bridge_vms(plan: Plan) -> Plan:
    """Returns the plan with a bridge VM in every link that needs netem, with steps, captures and predictions
    computed again.

    Access links of light nodes, links between two light nodes, and cables between NICs stay as they are: no
    bridge VM is put into them. Raises TopologyError for a multi-host plan, and for a link that needs a delay
    table.
    """
    if plan.hosts:
        rule = "need a kernel with netem each: bridge VMs in its place are not planned over hosts"
        raise TopologyError([problem_in(plan.topology, ("hosts",), "", rule, "use hosts that have it")])
    links, bridges = _moved(plan)
    _insist_on_no_tables(plan, links)
    nodes = (*plan.nodes, *bridges)
    interfaces = {node.name: node.interfaces for node in nodes}
    cards = [card for node in nodes for card in node.interfaces]
    vms = {node.name for node in nodes if node.kind == "vm"}
    steps = network_steps(plan.lab, plan.segments, interfaces, links, vms)
    steps += impair_steps(plan.lab, links, plan.segments, cards, links)
    captures = tuple(
        capture_point(
            plan.lab, one.name, one.at, plan.segments, interfaces, links,
            snaplen=one.snaplen, filter=one.filter, keep=one.keep,
            limit_bytes=one.limit_bytes, compress=one.compress, to=one.to,
        )
        for one in plan.captures
    )  # fmt: skip
    placed = dataclasses.replace(plan, nodes=nodes, links=links, steps=steps, captures=captures)
    return dataclasses.replace(placed, predictions=predictions(placed))


def _moved(plan: Plan) -> tuple[tuple[Link, ...], list[Node]]:
    """Returns the plan's links, those that need netem with their qdiscs in bridge VMs, and these VMs."""
    near = {(node.name, c.segment): c for node in plan.nodes for c in node.interfaces if c.bridge}
    mtus = {segment.name: segment.mtu for segment in plan.segments}
    links, nodes = list(plan.links), list[Node]()
    for place, link in enumerate(links):
        card, far = near.get((link.a, link.b)), None
        if link.through_core:
            card, far = near[link.a, link.name], near[link.b, link.name]
        # a link over a NIC's cable cannot lead through a bridge VM
        between = link.kind == "segments" and link.nics is None
        if needs_netem(link, plan.events) and (between or card is not None):
            mtu = mtus[link.b] if far is None else far.mtu
            links[place], node = in_bridge_vm(plan.lab, len(nodes), link, card, mtu, far)
            nodes.append(node)
    return tuple(links), nodes


def _insist_on_no_tables(plan: Plan, links: Iterable[Link]) -> None:
    """Raises TopologyError if a link with netem in a bridge VM needs a delay table: a VM's tc has only
    its own tables.
    """
    for link in links:
        ways = (link.forward, link.reverse)
        if any(d.enter is not None and d.impairment.tables & plan.tables.keys() for d in ways):
            rule = (
                "its `delays` need a table that the tc of a virtual machine, which carries its netem, has not"
            )
            remedy = "use --kernel uml, where all nodes are light, or delay and jitter"
            raise TopologyError([problem_in(plan.topology, ("links", link.name), "", rule, remedy)])


def needs_netem(link: Link, events: Iterable[Event]) -> bool:
    """Returns whether a link has an impairment that only netem can apply, from the start or by the timeline.
    False for half duplex and for links with a queue of a stated kind, which bridge VMs do not support.
    """
    ways = (link.forward.impairment, link.reverse.impairment)
    if link.half_duplex or any(way.queue is not None for way in ways):
        return False
    if any(queue is not None and queue.kind == "netem" for queue in map(queueing.queue_of, ways)):
        return True
    return any(event.action == "impair" and link.name in event.targets for event in events)


def in_bridge_vm(
    lab: str, index: int, link: Link, near: Interface | None, mtu: int, far: Interface | None = None
) -> tuple[Link, Node]:
    """Returns the link with its qdiscs inside a VM that joins both sides, and that VM, with MAC addresses by
    `index`.

    near, far: the interfaces of nodes at the ends of the link; None if the end is a segment. eth0 is on the
    side of `a`, eth1 on that of `b`; packets that leave through eth1 go forward.
    """
    name, core = f"netem-{link.name}", core_netns(lab)
    netns, a, b = node_netns(lab, name), link.forward.device, link.reverse.device
    forward = Direction(
        link.forward.impairment, netns, "eth1", core, b, enter=a, leave=b, trace=link.forward.trace
    )
    reverse = Direction(
        link.reverse.impairment, netns, "eth0", core, a, enter=b, leave=a, trace=link.reverse.trace
    )
    first, second = bridge_vm_macs(index)
    sides = (
        (near.segment if near else link.a, near.bridge if near else None, a, first),
        (far.segment if far else link.b, far.bridge if far else None, b, second),
    )
    cards = tuple(
        Interface(f"eth{i}", port, segment, "", 0, mac, mtu, bridge=bridge)
        for i, (segment, bridge, port, mac) in enumerate(sides)
    )
    node = Node(
        name, GROUP, "vm", name, netns, node_cgroup(lab, name), cards, (),
        vm=Vm(BUILTIN, memory(BUILTIN), netem=True),
    )  # fmt: skip
    return dataclasses.replace(link, forward=forward, reverse=reverse), node
