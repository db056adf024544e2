"""Lists the needs of a plan, each with the part of the plan that causes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from contract.codec import build
from contract.plan import Direction, Event, Impairment, Link, Node, Plan
from orchestrator import queueing
from orchestrator.kernel.protocol import Missing

QDISC_WORDS = re.compile(
    r"^qdisc (?:add|replace|change) dev \S+ (?:root|parent \S+)(?: handle \S+)? (\w+)", re.MULTILINE
)
REAL = "use --kernel host or uml with --time real on this machine"
OWN_KERNEL = "use --kernel host with --time real on this machine, or leave `outside` out"
EVERYWHERE = {"pfifo"}  # kinds that every kernel with qdiscs has (net/sched/sch_fifo.c)
FILTER_WORDS = re.compile(
    r"^filter add (?:dev \S+ (?:parent \S+|egress|ingress)|block \d+) protocol \S+ pref \d+ (\w+)",
    re.MULTILINE,
)
ACTION_WORDS = re.compile(r"^filter .* action (\w+)", re.MULTILINE)
LINK_WORDS = re.compile(r"^link add .*?\btype (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a plan for a kernel and machine: mappings from kinds of qdisc, filter or link, from cgroup
    controllers, and from tools to the reason.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    controllers: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)


def needs_of(plan: Plan) -> Needs:
    """Returns the kinds of qdisc and link, the cgroup controllers and the tools that a plan needs."""
    tools = {"ip": "links and addresses", "tc": "impairments"}
    vms = [node for node in plan.nodes if node.vm is not None]
    if vms:
        tools["qemu-system-x86_64"] = f"node {vms[0].name} is a virtual machine"
    if any(node.vm is not None and _from_disk(node.vm.image) for node in vms):
        tools["qemu-img"] = "disks of virtual machines are linked clones"
    if plan.captures:
        tools["tcpdump"] = f"capture {plan.captures[0].name}"
    for point in plan.captures:
        if point.compress:
            tools["zstd"] = f"capture {point.name} is compressed"
    return Needs(_kinds(plan), _controllers(plan.nodes) | _limited(plan), tools)


def netem_placed(
    plan: Plan, bridged: Callable[[Plan], Plan] | None, lacks: Callable[[str], str | None]
) -> Plan:
    """Returns the plan with netem in bridge VMs (by `bridged`) if it has virtual machines and needs netem,
    and the kernel has none; else the plan as it is. Also returns the plan as it is if `bridged` is None.
    """
    if bridged is None or not any(node.kind == "vm" for node in plan.nodes):
        return plan
    return bridged(plan) if "netem" in needs_of(plan).kinds and lacks("netem") is not None else plan


def _from_disk(image: str) -> bool:
    return not image.startswith("builtin")


def _kinds(plan: Plan) -> dict[str, str]:
    needs = {"veth": "nodes are joined to segments by veth pairs", "bridge": "a segment is a bridge"}
    guests = {node.netns for node in plan.nodes if node.vm is not None}
    if plan.tunnels:
        needs["vxlan"] = f"segment {plan.tunnels[0].segment} is on several hosts"
    for step in plan.steps:
        if step.netns in guests:
            continue  # the virtual machine's own kernel has these qdiscs
        for kind in _kinds_of(step.text) if step.tool == "tc" else LINK_WORDS.findall(step.text):
            needs.setdefault(kind, step.reason)
    for link in plan.links:
        for direction in _directions(link) if link.forward.netns not in guests else ():
            for kind in _kinds_of(queueing.set_text("device", direction.impairment)):
                needs.setdefault(kind, f"link {link.name} has an impairment")
    for event in plan.events:
        for wanted in _set_by(event) if not _in_guests(plan, event, guests) else ():
            for kind in _kinds_of(queueing.set_text("device", wanted)):
                needs.setdefault(kind, f"event {event.label or event.action} sets an impairment")
    return needs


def plugin_queues(plan: Plan) -> list[Missing]:
    """Returns the kinds of queue of plug-ins that a plan has: a kernel whose lab process does not find the
    plug-in's code lacks them.
    """
    ways = [way.impairment for link in plan.links for way in _directions(link)]
    ways += [wanted for event in plan.events for wanted in _set_by(event)]
    kinds = dict.fromkeys(wanted.queue.kind for wanted in ways if wanted.queue is not None)
    offers = {kind: queueing.QUEUE_KINDS.origin(kind) for kind in kinds if kind in queueing.QUEUE_KINDS}
    return [
        Missing(f"queue {kind}", f"it is of the plug-in {offer.package}, which is only on this machine", REAL)
        for kind, offer in offers.items() if offer is not None
    ]  # fmt: skip


def wrong_machines(plan: Plan) -> list[Missing]:
    """Returns the events of a plan that only the lab kernel in virtual time carries out: wrong clocks and
    perturbed schedules of nodes.
    """
    known = {"clock": "a clock of its own for a node", "schedule": "a schedule that a seed perturbs"}
    found = {event.action: event for event in plan.events if event.action in known}
    return [
        Missing(known[action], f"event {event.label or action} sets it", "use --time virtual")
        for action, event in found.items()
    ]  # fmt: skip


def outside(plan: Plan) -> list[Missing]:
    """Returns the endpoints outside the lab that nodes of a plan reach: only a lab in this machine's own
    kernel and in real time has a way to them.
    """
    return [
        Missing(f"a way to {text}", f"node {node.name} reaches it outside the lab", OWN_KERNEL)
        for node in plan.nodes for text in node.outside
    ]  # fmt: skip


def _kinds_of(text: str) -> list[str]:
    """Returns the kinds of qdiscs, filters and actions in lines for `tc -batch`, except those that every
    kernel has.
    """
    words = [k for pattern in (QDISC_WORDS, FILTER_WORDS, ACTION_WORDS) for k in pattern.findall(text)]
    return [kind for kind in words if kind not in EVERYWHERE]


def _in_guests(plan: Plan, event: Event, guests: set[str]) -> bool:
    """Returns whether an event has links among its targets and all of these have their qdiscs in virtual
    machines.
    """
    places = [link.forward.netns in guests for link in plan.links if link.name in event.targets]
    return bool(places) and all(places)


def _directions(link: Link) -> tuple[Direction, Direction]:
    return link.forward, link.reverse


def _set_by(event: Event) -> list[Impairment]:
    if event.action != "impair":
        return []
    return [build(Impairment, event.args[way]) for way in ("forward", "reverse") if event.args.get(way)]


def _limited(plan: Plan) -> dict[str, str]:
    event = next((one for one in plan.events if one.action == "limit"), None)
    return {} if event is None else {"cpu": f"event {event.label} sets a CPU limit"}


def _controllers(nodes: Iterable[Node]) -> dict[str, str]:
    needs: dict[str, str] = {}
    for node in nodes:
        cpu = (node.cpu_limit_mhz, node.cpu_limit_cores, node.cpu_reserve_mhz, node.cpu_reserve_cores)
        if any(value is not None for value in cpu):
            needs.setdefault("cpu", f"node {node.name} has a CPU limit or reservation")
        if node.memory_limit_bytes is not None:
            needs.setdefault("memory", f"node {node.name} has a memory limit")
        if node.process_limit is not None:
            needs.setdefault("pids", f"node {node.name} has a process limit")
    return needs
