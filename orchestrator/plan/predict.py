"""What a plan lets one expect: round trips, bandwidth-delay products, what the machine must hold."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Impairment, Mqtt, Plan, Prediction
from .correlation import realised_share
from .paths import Paths, pairs

# Measured on light nodes with the Rust agent, rounded up; the budget of a client is 3 MB (PSS).
NODE_BYTES = 3_000_000
BROKER_BYTES = 8_000_000
BROKER_CLIENT_BYTES = 30_000
PROCESS_BYTES = 10_000_000  # any other program: a guess, said as such
CAPTURE_BYTES = 6_000_000  # tcpdump with its ring buffer
# Beside a guest's own memory: QEMU with its translation cache, its share of kernel and initrd (20 to 45 MB).
VM_BYTES = 50_000_000
LAB_BYTES = 60_000_000  # lab process and launcher
NODE_FILES = 6  # of the launcher for each node: namespaces, pipes, counters
OWN_FILES = 64

_TCP_BYTES = 66  # Ethernet 14, IPv4 20, TCP 20 and timestamps 12
_PCAP_RECORD_BYTES = 16
_CONNECTION_PACKETS = 16  # handshake, CONNECT, SUBSCRIBE, their answers and acknowledgements, the end
# Each QoS step adds handshake packets (4 bytes of MQTT) and, at worst, a TCP acknowledgement for each.
_HANDSHAKE_PACKETS = {0: 0, 1: 1, 2: 3}


def predictions(plan: Plan) -> tuple[Prediction, ...]:
    """Everything predicted; `predictions` of the plan given need not be set."""
    found: list[Prediction] = [*_round_trips(plan), *_links(plan), *_machine(plan)]
    messages = sum(expected_messages(client) for client in _clients(plan))
    found.append(Prediction("messages", "run", round(messages), "messages"))
    found.extend(
        Prediction("capture size", c.name, float(_capture_bytes(plan, c.snaplen)), "B") for c in plan.captures
    )
    return tuple(found)


def _clients(plan: Plan) -> list[Mqtt]:
    return [s.mqtt for node in plan.nodes for s in node.software if s.mqtt is not None]


def expected_messages(client: Mqtt) -> float:
    """Messages that this client schedules, on average."""
    if client.publish is None:
        return 0.0
    schedule = client.publish.schedule
    seconds = max(client.publish.stop_ns - client.publish.start_ns, 0) / 1e9
    return schedule.rate_per_s / schedule.count * seconds


def _round_trips(plan: Plan) -> Iterator[Prediction]:
    """Between every two groups that routes or links join; a full frame each way."""
    paths = Paths(plan.segments, plan.nodes, plan.links)
    for a, b in pairs(plan):
        there, back = paths.between(a.name, b.name), paths.between(b.name, a.name)
        if there is not None and back is not None:
            total = there.delay_ns() + back.delay_ns()
            yield Prediction("round trip", f"{a.group} <-> {b.group}", total / 1e9, "s")


def _links(plan: Plan) -> Iterator[Prediction]:
    """Bandwidth-delay product and queue limit of each different impaired direction."""
    for link in plan.links:
        for name, direction in (("forward", link.forward), ("reverse", link.reverse)):
            wanted = direction.impairment
            if not wanted.present:
                continue
            if wanted.rate_bps:
                product = wanted.rate_bps * wanted.delay_ns / 8e9
                yield Prediction("bandwidth-delay product", f"{link.name} {name}", product, "B")
            yield Prediction("queue limit", f"{link.name} {name}", float(wanted.limit_packets), "packets")
            yield from _correlated(f"{link.name} {name}", wanted)


def _correlated(scope: str, wanted: Impairment) -> Iterator[Prediction]:
    """The shares that netem's correlated draws really give, where they are not the ones asked for."""
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        chance, correlation = getattr(wanted, name), getattr(wanted, f"{name}_correlation")
        if chance and correlation:
            yield Prediction(f"{name} by netem", scope, realised_share(chance, correlation), "share")


def _machine(plan: Plan) -> Iterator[Prediction]:
    clients = len(_clients(plan))
    programs = [s for node in plan.nodes for s in node.software if s.process is not None]
    brokers = sum(s.role == "broker" for s in programs)
    memory = LAB_BYTES + CAPTURE_BYTES * len(plan.captures)
    memory += sum(NODE_BYTES if n.vm is None else VM_BYTES + n.vm.memory_bytes for n in plan.nodes)
    memory += (
        BROKER_BYTES * brokers + BROKER_CLIENT_BYTES * clients + PROCESS_BYTES * (len(programs) - brokers)
    )
    yield Prediction("memory", "lab", float(memory), "B")
    # One process a node, its programs, a tcpdump a capture, the lab process and the launcher.
    yield Prediction(
        "processes", "lab", float(len(plan.nodes) + len(programs) + len(plan.captures) + 2), "processes"
    )
    yield Prediction("open files", "launcher", float(OWN_FILES + NODE_FILES * len(plan.nodes)), "files")
    if brokers:
        yield Prediction("open files", "broker", float(OWN_FILES + clients), "files")
    # Both sides of every conversation with a broker, in the one table that all namespaces share.
    yield Prediction("neighbour entries", "kernel", float(2 * clients), "entries")


def _capture_bytes(plan: Plan, snaplen: int) -> int:
    """An upper estimate, as if the point saw every message in and out of the broker."""
    total = 24
    for client in _clients(plan):
        total += _CONNECTION_PACKETS * (_PCAP_RECORD_BYTES + min(snaplen, _TCP_BYTES + 20))
        if client.publish is None:
            continue
        packet = _TCP_BYTES + 5 + len(client.publish.topic) + client.publish.payload_bytes
        small = _PCAP_RECORD_BYTES + min(snaplen, _TCP_BYTES + 4)
        handshake = _HANDSHAKE_PACKETS[client.publish.qos]
        one_way = _PCAP_RECORD_BYTES + min(snaplen, packet) + small * (2 * handshake + 1)
        total += round(2 * expected_messages(client) * one_way)
    return total
