"""Changes a plan so that it lacks one cause; names, addresses, times and seeds stay the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address, ip_network
from itertools import product

from contract.codec import build, plain
from contract.plan import WAYS, Event, Flow, Impairment, Link, Neighbour, Node, Plan
from contract.plan.family import faces
from orchestrator.plan.steps import impair_steps

WIDER = 20  # factor by which the queue's limit is raised
FASTER = 10  # factor by which the link's rate is raised
ON_NODES = ("start", "stop", "kill", "restart", "run", "limit")


class WithoutError(ValueError):
    """Raised if a cause cannot be removed from a plan; the text gives the reason and the possible causes."""


Change = Callable[[Impairment], Impairment]


def without(plan: Plan, cause: str) -> Plan:
    """Returns the plan without a cause KIND:NAME; WithoutError if it has no such kind, flow, link or node, or
    if nothing would change.
    """
    kind, _, name = cause.partition(":")
    if kind not in KINDS:
        raise WithoutError(f"--without {cause!r}: is not KIND:NAME with a kind of {', '.join(KINDS)}")
    known, change = KINDS[kind]
    names = known(plan)
    if name not in names:
        raise WithoutError(
            f"--without {cause!r}: the run has no such {kind}; it has {', '.join(names) or 'none'}"
        )
    changed = change(plan, name)
    if changed == plan:
        raise WithoutError(f"--without {cause!r}: the run has nothing of it at {name}; nothing would change")
    return changed


def _flows(plan: Plan) -> list[str]:
    return [flow.name for flow in plan.flows]


def _links(plan: Plan) -> list[str]:
    return [link.name for link in plan.links]


def _nodes(plan: Plan) -> list[str]:
    return [node.name for node in plan.nodes]


def _no_flow(plan: Plan, name: str) -> Plan:
    """Removes a flow: it gets no time to send, and its software is left out if it sends nothing else."""
    (gone,) = (flow for flow in plan.flows if flow.name == name)
    flows = tuple(replace(one, stop_ns=one.start_ns) if one is gone else one for one in plan.flows)
    if any(_sends(one, gone.sender) for one in plan.flows if one is not gone):
        return replace(plan, flows=flows)
    nodes = tuple(
        replace(
            node,
            software=tuple(
                one
                for one in node.software
                if one.session is None or one.session.endpoint != gone.sender or one.session.listens
            ),
        )
        for node in plan.nodes
    )
    return replace(plan, flows=flows, nodes=nodes)


def _sends(flow: Flow, endpoint: str) -> bool:
    return flow.sender == endpoint


def _impaired(change: Change) -> Callable[[Plan, str], Plan]:
    """Returns a function that changes the impairments of a link, including those in events."""

    def changed(plan: Plan, name: str) -> Plan:
        links = tuple(_link(link, change) if link.name == name else link for link in plan.links)
        steps = tuple(step for step in plan.steps if step.tool != "tc")
        cards = [card for node in plan.nodes for card in node.interfaces]
        steps += impair_steps(plan.lab, links, plan.segments, cards, links)
        events = tuple(_event(event, change) if name in event.targets else event for event in plan.events)
        return replace(plan, links=links, steps=steps, events=events)

    return changed


def _link(link: Link, change: Change) -> Link:
    ways = {way: link.way(way) for way in WAYS}
    found = {way: replace(one, impairment=change(one.impairment)) for way, one in ways.items()}
    return replace(link, forward=found["forward"], reverse=found["reverse"])


def _event(event: Event, change: Change) -> Event:
    if event.action != "impair":
        return event
    given = {way: plain(change(build(Impairment, one))) if one else one for way, one in event.args.items()}
    return replace(event, args=given)


def _no_loss(one: Impairment) -> Impairment:
    return replace(
        one, loss=0.0, loss_correlation=0.0, gemodel=None, corrupt=0.0, corrupt_correlation=0.0
    )  # fmt: skip


def _no_jitter(one: Impairment) -> Impairment:
    return replace(one, jitter_ns=0, delay_correlation=0.0, distribution="uniform", slot=None)


def _wide(one: Impairment) -> Impairment:
    return replace(one, limit_packets=one.limit_packets * WIDER)


def _fast(one: Impairment) -> Impairment:
    return replace(one, rate_bps=one.rate_bps * FASTER)


def _no_cut(plan: Plan, name: str) -> Plan:
    return _no_events(plan, ("link-down", "link-up"), name)


def _no_events(plan: Plan, actions: tuple[str, ...], name: str) -> Plan:
    """Removes the events with these actions on a link or node; events on others stay."""
    found = []
    for event in plan.events:
        if event.action in actions and name in event.targets:
            others = tuple(one for one in event.targets if one != name)
            if not others:
                continue
            event = replace(event, targets=others)
        found.append(event)
    return replace(plan, events=tuple(found))


def _node(plan: Plan, name: str, change: Callable[[Node], Node]) -> Plan:
    return replace(plan, nodes=tuple(change(node) if node.name == name else node for node in plan.nodes))


def _no_cpu(plan: Plan, name: str) -> Plan:
    return _node(plan, name, lambda node: replace(node, cpu_limit_mhz=None, cpu_limit_cores=None))


def _no_nagle(plan: Plan, name: str) -> Plan:
    """Sets TCP_NODELAY for software of the node that has this setting."""

    def change(node: Node) -> Node:
        spec = (
            replace(one, spec={**one.spec, "nodelay": True}) if "nodelay" in one.spec else one
            for one in node.software
        )
        return replace(node, software=tuple(spec))

    return _node(plan, name, change)


def _no_lookup(plan: Plan, name: str) -> Plan:
    """Adds the node's neighbours to its neighbour table, and the node to theirs."""
    entries: dict[str, set[Neighbour]] = {node.name: set(node.neighbours) for node in plan.nodes}
    (own,) = (node for node in plan.nodes if node.name == name)
    for other in plan.nodes:
        if other is own:
            continue
        for mine, its in product(faces(own.interfaces), faces(other.interfaces)):
            if ip_address(its.address) in ip_network(f"{mine.address}/{mine.prefix}", strict=False):
                entries[name].add(Neighbour(its.address, its.mac, mine.name))
                entries[other.name].add(Neighbour(mine.address, mine.mac, its.name))
    nodes = (
        replace(node, neighbours=tuple(sorted(entries[node.name], key=lambda one: one.address)))
        for node in plan.nodes
    )
    return replace(plan, nodes=tuple(nodes))


KINDS: dict[str, tuple[Callable[[Plan], list[str]], Callable[[Plan, str], Plan]]] = {
    "flow": (_flows, _no_flow),
    "rate": (_links, _impaired(_fast)),
    "queue": (_links, _impaired(_wide)),
    "loss": (_links, _impaired(_no_loss)),
    "jitter": (_links, _impaired(_no_jitter)),
    "cut": (_links, _no_cut),
    "nagle": (_nodes, _no_nagle),
    "cpu": (_nodes, _no_cpu),
    "events": (_nodes, lambda plan, name: _no_events(plan, ON_NODES, name)),
    "lookup": (_nodes, _no_lookup),
}
