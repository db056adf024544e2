"""Finds schedules that exceed a link's rate: the next message is due before the link has sent the previous
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from contract.plan import Direction, Flow, Impairment, Note, Plan, Software

from .. import queueing
from ..language.units import text_ns
from ..software.registry import KINDS
from .netem import FRAME_BYTES
from .paths import Path, Paths

ETHERNET_BYTES, IP_BYTES = 14, 20
Transmitter = tuple[str, str]  # namespace and device; for half duplex the shared device only


def crowded(plan: Plan, relays: Mapping[str, str]) -> Iterator[Note]:
    """Yields one note for each traffic class and transmitter whose rate is too low for one flow of the class
    alone; only the slowest transmitter of a flow counts.

    The computation uses the least number of bytes that a protocol over IP sends: payload and, for a request,
    its replies, in full packets, each sent once. relays: for each flow name, the node that relays its
    messages.
    """
    paths = Paths.of(plan)
    links = {_transmitter(way): link.name for link in plan.links for way in (link.forward, link.reverse)}
    at = {s.session.endpoint: (node.name, s) for node in plan.nodes for s in node.software if s.session}
    nodes = {endpoint: name for endpoint, (name, _) in at.items()}
    told: set[tuple[str, Transmitter]] = set()
    for flow in plan.flows:
        interval_ns = _interval_ns(flow)
        if flow.sender not in at or interval_ns is None:
            continue
        there, back = _paths(plan, paths, flow, nodes, relays.get(flow.name))
        spans = _spans_ns(flow, there, back, at[flow.sender][1])
        slowest, span_ns = max(spans.items(), key=lambda one: one[1], default=(("", ""), 0))
        key = (flow.traffic_class, slowest)
        if span_ns > interval_ns and key not in told:
            told.add(key)
            yield _note(flow, links[slowest], span_ns, interval_ns)


def _transmitter(way: Direction) -> Transmitter:
    """Returns the key of a direction's transmitter: namespace and device, since device names repeat between
    nodes; for half duplex "" and the shared device.
    """
    return ("", way.shared) if way.shared else (way.netns, way.device)


def _interval_ns(flow: Flow) -> int | None:
    """Returns the shortest interval (ns) between a flow's messages by its schedule; None without a schedule
    or with a rate of 0.
    """
    if flow.schedule is None:
        return None
    rate = max(step.per_s for step in flow.schedule.rates) / flow.schedule.count
    return round(1e9 / rate) if rate else None


def _paths(
    plan: Plan, paths: Paths, flow: Flow, nodes: Mapping[str, str], relay: str | None
) -> tuple[list[Path], list[Path]]:
    """Returns the paths of a flow's messages to all its receivers, by way of the relay, and the paths of the
    replies; omits unknown paths. If receivers take turns, only the paths of the first one count.
    """
    here = nodes[flow.sender]
    names = [nodes[n] for d in flow.deliveries for n in plan.receivers[d.receivers] if n in nodes]
    names = names[:1] if flow.spread == "round-robin" else names
    there = [(relay or here, name) for name in names] + ([(here, relay)] if relay else [])
    back = [(name, here) for name in names] if flow.reply is not None else []
    found = ([paths.between(a, b) for a, b in pairs if a != b] for pairs in (there, back))
    first, second = ([path for path in some if path is not None] for some in found)
    return first, second


def _spans_ns(flow: Flow, there: list[Path], back: list[Path], sender: Software) -> dict[Transmitter, int]:
    """Returns the time (ns) for which one burst of the flow, with its replies, occupies each transmitter that
    has a rate.
    """
    total: Counter[Transmitter] = Counter()
    burst = flow.schedule.burst if flow.schedule is not None else 1
    once = KINDS[sender.kind].costs(sender, [flow]).one_copy
    for way in _ways(there, once):
        total[_transmitter(way)] += burst * _sending_ns(flow.payload.bytes, way.impairment)
    for way in _ways(back, False):
        assert flow.reply is not None, "only answers go back"
        total[_transmitter(way)] += burst * _sending_ns(flow.reply.bytes, way.impairment)
    return total


def _ways(paths: list[Path], once: bool) -> list[Direction]:
    """Returns the directions on the paths that have a rate, repeated if a message passes one repeatedly; with
    `once`, each transmitter once.
    """
    every = [way for path in paths for way in path.directions if way.impairment.rate_bps]
    return list({_transmitter(way): way for way in every}.values()) if once else every


def _sending_ns(payload_bytes: int, asked: Impairment) -> int:
    """Returns the time (ns) to send a message in full packets, with the headers of Ethernet and IPv4."""
    room = asked.frame_bytes - FRAME_BYTES - IP_BYTES
    packets = -(-payload_bytes // room)
    frames_bytes = payload_bytes + packets * (ETHERNET_BYTES + IP_BYTES)
    return frames_bytes * 8 * 10**9 // queueing.lone_bps(asked)


def _note(flow: Flow, link: str, span_ns: int, interval_ns: int) -> Note:
    what = "messages and their answers take" if flow.reply is not None else "messages take"
    text = (
        f"every {text_ns(interval_ns)} new ones are due, and {what} link {link} at least {text_ns(span_ns)}: "
        "they pile up in its queue"
    )
    return Note(f"class {flow.traffic_class}", text, "send less often, or to fewer, or raise the link's rate")
