"""Predicts a plan's round trips, bandwidth-delay products, queue limits, messages, traffic and use of the
machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from contract.plan import Capture, Flow, Impairment, Node, Plan, Prediction, Software

from ..software.kind import Costs
from ..software.registry import KINDS
from ..software.sending import expected_messages
from . import vm_prices
from .capacity import DISK_BYTES, VM_BYTES
from .correlation import effective_share
from .paths import Paths, pairs
from .vms import has_disk

# Memory of a light node, measured by bench/memory.py (Linux 6.18, x86-64) and rounded up: 0.15 MB (PSS) of an
# idle agent, or 0.23 MB of one with a client, and 0.45 to 0.51 MB that the kernel holds for namespaces,
# interfaces and stacks.
NODE_BYTES = 1_000_000
CAPTURE_BYTES = 20_000_000  # memory of tcpdump with its buffers: 19.5 MB
# memory at 350 to 1,000 nodes: lab process 20 to 24 MB, launcher 2 to 4 MB, `vnet run` 39 MB
LAB_BYTES = 70_000_000
# Memory that a session beyond `ROOM_FOR_SESSIONS` adds to its node: agent, both ends of its connection, its
# share of the plan. Measured in virtual time from 1,000 to 4,000 sessions: 37 kB each, the broker's included.
SESSION_BYTES = 40_000
ROOM_FOR_SESSIONS = 16  # number of sessions whose memory NODE_BYTES includes
NODE_FILES = 1  # files that the launcher opens for each node: its socket
SAMPLED_FILES = 2  # files that the sampler (another process) opens for each node: CPU time and memory
OWN_FILES = 64

_PCAP_HEADER_BYTES = 24
_PCAP_RECORD_BYTES = 16


def predictions(plan: Plan) -> tuple[Prediction, ...]:
    """Returns all predictions of a plan; ignores `plan.predictions`."""
    software = [s for node in plan.nodes for s in node.software]
    of_nodes = costs_of(plan.nodes, plan.flows)
    costs = [cost for own in of_nodes.values() for cost in own]
    found: list[Prediction] = [*_round_trips(plan), *_links(plan), *_machine(plan, software, costs)]
    found.append(_neighbours(plan, of_nodes.values()))
    messages = sum(expected_messages(flow) for flow in plan.flows)
    found.append(Prediction("messages", "run", round(messages), "messages"))
    found.extend(offered(plan))
    found.extend(
        Prediction("capture size", c.name, _capture_bytes(costs, c), "B") for c in plan.captures if not c.to
    )
    return tuple(found)


def costs_of(nodes: Iterable[Node], flows: Iterable[Flow]) -> dict[str, list[Costs]]:
    """Returns the costs of each piece of software, by node, in the node's order; a kind computes them from
    its software and the flows that it sends.
    """
    of: dict[str, list[Flow]] = {}
    for flow in flows:
        of.setdefault(flow.sender, []).append(flow)
    return {
        node.name: [
            KINDS[s.kind].costs(s, of.get(s.session.endpoint, []) if s.session else []) for s in node.software
        ]
        for node in nodes
    }


def _round_trips(plan: Plan) -> Iterator[Prediction]:
    """Yields a prediction in seconds for each pair of groups that `pairs` chooses: the delay of a full frame
    from the first node of one group to the first node of the other and back. Omits pairs without a known path
    in both directions.
    """
    paths = Paths.of(plan)
    for a, b in pairs(plan):
        there, back = paths.between(a.name, b.name), paths.between(b.name, a.name)
        if there is not None and back is not None:
            total = there.delay_ns() + back.delay_ns()
            yield Prediction("round trip", f"{a.group} <-> {b.group}", total / 1e9, "s")


def _links(plan: Plan) -> Iterator[Prediction]:
    """Yields, for each impaired direction of a link: its bandwidth-delay product in bytes, if it has a rate;
    its queue limit in packets, unless the file states a kind of queue; and the shares of packets that a
    correlation changes.
    """
    for link in plan.links:
        for name, direction in (("forward", link.forward), ("reverse", link.reverse)):
            wanted = direction.impairment
            if not wanted.present:
                continue
            if wanted.rate_bps:
                product = wanted.rate_bps * wanted.delay_ns / 8e9
                yield Prediction("bandwidth-delay product", f"{link.name} {name}", product, "B")
            if wanted.queue is None:  # a stated kind of queue has limits of its own
                yield Prediction("queue limit", f"{link.name} {name}", float(wanted.limit_packets), "packets")
            yield from _correlated(f"{link.name} {name}", wanted)


def _correlated(scope: str, wanted: Impairment) -> Iterator[Prediction]:
    """Yields the effective shares of lost, duplicated, corrupted and reordered packets for each impairment
    with a correlation, since a correlation makes netem's share differ from the requested one.
    """
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        chance, correlation = getattr(wanted, name), getattr(wanted, f"{name}_correlation")
        if chance and correlation:
            yield Prediction(f"{name} by netem", scope, effective_share(chance, correlation), "share")


def _machine(plan: Plan, software: list[Software], costs: list[Costs]) -> Iterator[Prediction]:
    programs = sum(s.process is not None for s in software)
    memory = LAB_BYTES + CAPTURE_BYTES * len(plan.captures) + sum(c.memory_bytes for c in costs)
    memory += sum(NODE_BYTES if n.vm is None else VM_BYTES + n.vm.memory_bytes for n in plan.nodes)
    memory += SESSION_BYTES * sum(_sessions_without_room(node) for node in plan.nodes)
    yield Prediction("memory", "lab", float(memory), "B")
    if disks := sum(n.vm is not None and has_disk(n.vm.image) for n in plan.nodes):
        yield Prediction("disks", "lab", float(disks * DISK_BYTES), "B")
    yield from vm_prices.predictions(plan.nodes)
    # The processes are: one per node, the node's programs, one tcpdump per capture, the lab process and the
    # launcher.
    processes = len(plan.nodes) + programs + len(plan.captures) + 2
    yield Prediction("processes", "lab", float(processes), "processes")
    # The larger number of the two processes counts, because each process has its own limit.
    files = SAMPLED_FILES if software else NODE_FILES
    yield Prediction("open files", "launcher", float(OWN_FILES + files * len(plan.nodes)), "files")
    elsewhere: Counter[str] = Counter()
    for cost in costs:
        elsewhere.update(cost.files_at)
    most: dict[str, int] = {}
    for name, files in elsewhere.items():
        role = name.partition(" ")[0]
        most[role] = max(most.get(role, 0), files)
    for role, files in most.items():
        yield Prediction("open files", role, float(OWN_FILES + files), "files")


def _sessions_without_room(node: Node) -> int:
    return max(sum(s.session is not None for s in node.software) - ROOM_FOR_SESSIONS, 0)


def _neighbours(plan: Plan, of_nodes: Iterable[Sequence[Costs]]) -> Prediction:
    """Predicts the neighbour entries: both sides of every conversation, in the one table that all namespaces
    share. However many sessions a node has, it has one entry for each other node.
    """
    others = max(len(plan.nodes) - 1, 0)
    entries = 2 * sum(min(sum(cost.peers for cost in own), others) for own in of_nodes)
    return Prediction("neighbour entries", "kernel", float(entries), "entries")


def _capture_bytes(costs: list[Costs], capture: Capture) -> float:
    """Returns an upper estimate of a capture's size. It assumes that the point sees all packets of all
    software and that compression saves nothing; it is at most the capture's limit.
    """
    packets = [packet for cost in costs for packet in cost.packets]
    records = sum(count * (_PCAP_RECORD_BYTES + min(capture.snaplen, length)) for count, length in packets)
    size = float(round(_PCAP_HEADER_BYTES + records))
    return min(size, float(capture.limit_bytes)) if capture.limit_bytes else size


def offered(plan: Plan) -> Iterator[Prediction]:
    """Yields the frames and bits a second of all flows with a schedule together, on average from each flow's
    start to its stop. Yields nothing if none of their kinds counts frames.

    The kinds state the number of frames (`Costs.packets`): exact for datagrams, and the worst case for
    protocols over TCP, in which each segment is acknowledged by itself. A frame counts once, however many
    links it passes, and without the preamble, checksum and gap of Ethernet.
    """
    senders = {s.session.endpoint: s for node in plan.nodes for s in node.software if s.session is not None}
    frames = bits = 0.0
    for flow in plan.flows:
        seconds = (flow.stop_ns - flow.start_ns) / 1e9
        if flow.schedule is None or flow.sender not in senders or seconds <= 0:
            continue
        software = senders[flow.sender]
        for count, length in KINDS[software.kind].costs(software, [flow]).packets:
            frames += count / seconds
            bits += 8 * count * length / seconds
    if frames:
        yield Prediction("offered frames", "senders", frames, "frames/s")
        yield Prediction("offered load", "senders", bits, "bit/s")
