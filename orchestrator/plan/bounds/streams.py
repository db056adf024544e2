"""Converts a plan's flows to streams of network calculus, and the directions of its links to servers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contract.plan import Band, Direction, Flow, Node, Plan, Software
from contract.plan.family import family

from ...language.units import text_ns
from ...queueing import queue_kind_of, queue_of
from ...queueing.tbf import ROUNDING_BYTES
from ...software.kind import Offered, Shares
from ...software.registry import KINDS
from ..paths import Path, Paths
from .network import Hop, Order, Server, Stream

ETHERNET_BYTES, TAG_BYTES = 14, 4
IP_BYTES = {"IPv4": 20, "IPv6": 40}
FRAGMENT_BYTES = 8  # the payload of a fragment is a multiple of this (RFC 791)
TABLE_REACH = 4.0  # jitters by which a delay exceeds the mean at most, by netem's tables: 32,767 / 8,192
OVERLAID = "a program of its node forwards the class itself"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Owed:
    """A stream with its flow and receiver; flow None: the stream has no bound of its own and only delays
    others.
    """

    stream: Stream
    flow: Flow | None = None
    receiver: str = ""


def servers(plan: Plan, machine_bps: float = 0.0) -> Iterator[Server]:
    """Yields a server for each direction of each link; both directions of a half-duplex link have the same
    name. `machine_bps` is the assumed rate of a link without a rate; 0: that server has no bound.
    """
    moved = {(node, one.link): one for node, one in _shares(plan)}
    for link in plan.links:
        for node, direction in ((link.a, link.forward), (link.b, link.reverse)):
            yield _server(plan, direction, machine_bps, moved.get((node, link.name)))


def _shares(plan: Plan) -> Iterator[tuple[str, Shares]]:
    """Yields (node, shares) for each program that changes the rates of a link's classes."""
    for node in plan.nodes:
        for software in node.software:
            if software.kind in KINDS and (found := KINDS[software.kind].shares(software)) is not None:
                yield node.name, found


def _server(plan: Plan, direction: Direction, machine_bps: float, moved: Shares | None) -> Server:
    wanted, queue = direction.impairment, direction.impairment.queue
    queue_kind = queue_kind_of(wanted)
    order: Order = "fifo" if queue_kind is None or queue_kind.order == "unknown" else queue_kind.order
    classes = queue.bands if queue is not None and order in ("guarantee", "credit") else ()
    line_bps, line_bits = _line(direction)
    least_bps, itself = (moved.least_bps, moved.itself) if moved else ({}, frozenset())
    return Server(
        name=_names(plan)[_key(direction)],
        bps=wanted.rate_bps or machine_bps,
        delay_s=wanted.delay_ns / 1e9,
        jitter_s=wanted.jitter_ns * (1.0 if wanted.distribution == "uniform" else TABLE_REACH) / 1e9,
        order=order,
        frame_bits=8.0 * wanted.frame_bytes,
        guarantees_bps=tuple(float(least_bps.get(one.name, one.rate_bps)) for one in classes),
        line_bps=float(line_bps),
        line_bits=line_bits,
        unknown_of={place: OVERLAID for place, one in enumerate(classes) if one.name in itself},
        unknown=_unknown(direction, machine_bps),
    )


def _line(direction: Direction) -> tuple[int, float]:
    """Returns the rate and the burst (bits) of the curve that bounds what leaves a direction; a rate of 0 if
    none is known: without a rate of its own, or if a queue with classes limits it.

    netem sends a frame when its time at the rate is over (packet_time_ns), a bucket what it holds and the
    rate.
    """
    wanted, queue = direction.impairment, queue_of(direction.impairment)
    queue_kind = queue_kind_of(wanted)
    if queue is None or not wanted.rate_bps or (queue_kind is not None and queue_kind.shapes):
        return 0, 0.0
    at_once = queue.at_once_bytes(wanted) + ROUNDING_BYTES
    return wanted.rate_bps, 8.0 * max(wanted.frame_bytes, at_once)


def _unknown(direction: Direction, machine_bps: float) -> str:
    """Returns the first reason why a direction has no service curve (trace, duplication, reordering, slots,
    kind of queue, no rate); "" if it has one.
    """
    wanted, queue_kind = direction.impairment, queue_kind_of(direction.impairment)
    reasons = {
        "its trace changes it while it runs": direction.trace is not None,
        "it duplicates packets": bool(wanted.duplicate),
        "it lets packets overtake one another": bool(wanted.reorder),
        "it sends in slots": wanted.slot is not None,
        "a class goes ahead of the others": wanted.queue is not None
        and any(one.ahead for one in wanted.queue.bands),
        f"no curve is known of its queue, {queue_kind.kind if queue_kind else ''}": queue_kind is not None
        and queue_kind.order == "unknown",
        "it has no rate; say which the machine has": not (wanted.rate_bps or machine_bps),
    }
    return next((reason for reason, so in reasons.items() if so), "")


def _key(direction: Direction) -> Key:
    """Returns the key of a transmitter: namespace and device, since device names repeat between nodes. A
    transmitter that both directions share has an empty namespace.
    """
    return ("", direction.shared) if direction.shared else (direction.netns, direction.device)


def _names(plan: Plan) -> dict[Key, str]:
    """Returns the name of each transmitter by its key: link and direction."""
    found: dict[Key, str] = {}
    for link in plan.links:
        a, b = (link.a, link.b) if link.kind != "medium" else (link.a, link.a)
        for direction, ends in ((link.forward, f"{a} -> {b}"), (link.reverse, f"{b} -> {a}")):
            whole = f"link {link.name}" + ("" if link.half_duplex else f", {ends}")
            found.setdefault(_key(direction), whole)
    return found


def streams(plan: Plan, node_s: float = 0.0) -> Iterator[Owed]:
    """Yields a stream for each flow and receiver, and the streams of closed loops, which only delay others. A
    flow without a known sender, receiver, arrival curve or path has a stream with the reason.

    node_s: the longest time (s) that a node needs to send a message, and again to receive one; a request
    counts both ways.
    """
    names, paths = _names(plan), Paths.of(plan)
    at = {s.session.endpoint: (node, s) for node in plan.nodes for s in node.software if s.session}
    brokers = [node.name for node in plan.nodes for s in node.software if s.role == "broker"]
    for flow in plan.flows:
        for receiver in [name for one in flow.deliveries for name in plan.receivers[one.receivers]]:
            name = f"{flow.name} to {receiver}"
            if flow.sender not in at or receiver not in at:
                own = "a program of the user's own sends or receives it"
                why = "the relay chooses which member of a group gets it" if receiver in plan.shared else own
                yield Owed(Stream(name, name, (), unknown=why), flow, receiver)
                continue
            (here, sender), there = at[flow.sender], at[receiver]
            offered = KINDS[sender.kind].offers(sender, flow)
            if isinstance(offered, str):
                yield Owed(Stream(name, name, (), unknown=offered), flow, receiver)
                stops = [here.name, there[0].name, *brokers]
                yield from _crowd(flow, sender, stops, paths, names)
            else:
                stream = _stream(flow, receiver, (here, sender), there, offered, paths, names)
                ends_s = node_s * (4 if offered.reply_bytes else 2)
                yield Owed(dataclasses.replace(stream, ends_s=ends_s), flow, receiver)


def _crowd(
    flow: Flow, sender: Software, stops: Sequence[str], paths: Paths, names: Mapping[Key, str]
) -> Iterator[Owed]:
    """Yields streams of unknown rate for a closed loop, one for each direction and class on the paths between
    its ends and the brokers.
    """
    ways = [paths.between(a, b) for a, b in itertools.permutations(dict.fromkeys(stops), 2)]
    used = {_key(way): way for path in ways if path is not None for way in path.directions}
    for way in used.values():
        marked, rest = _band(way, sender, None), _band(way, None, None)
        for band in {marked, rest}:
            hop = Hop(names[_key(way)], 0.0, band)
            yield Owed(Stream(flow.name, f"{flow.name} at {hop.server}", (hop,), unknown="closed loop"))


def _stream(
    flow: Flow,
    receiver: str,
    sends: tuple[Node, Software],
    takes: tuple[Node, Software],
    offered: Offered,
    paths: Paths,
    names: Mapping[Key, str],
) -> Stream:
    """Returns the stream of a flow to one receiver, with the hops of the message and of its reply; a stream
    with a reason if a path is unknown.
    """
    name, (here, sender), (there, other) = f"{flow.name} to {receiver}", sends, takes
    out, back = paths.between(here.name, there.name), paths.between(there.name, here.name)
    if out is None or (offered.reply_bytes and back is None):
        return Stream(name, name, (), unknown="no way between them is known from the plan")
    hops = _hops(names, out, here, sender, offered, offered.message_bytes)
    if offered.reply_bytes and back is not None:
        answer = _hops(names, back, there, other, offered, offered.reply_bytes)
        hops += [dataclasses.replace(hop, answers=not place) for place, hop in enumerate(answer)]
    burst, per_s, unknown = _bucket(flow, offered)
    return Stream(name, _source(flow, receiver, here, sender), tuple(hops), burst, per_s, unknown)


def _bucket(flow: Flow, offered: Offered) -> tuple[float, float, str]:
    """Returns burst, messages per second and "" for a flow's arrivals. If the arrivals are random or greedy,
    returns the reason instead of "".
    """
    schedule = flow.schedule
    if offered.per_s is not None:
        return float(offered.burst), offered.per_s, ""
    if schedule is None:
        return 0.0, 0.0, "it is greedy"
    per_s = schedule.burst * max(rate.per_s for rate in schedule.rates)
    random = "its arrivals are random (poisson)" if schedule.arrivals == "poisson" else ""
    return float(schedule.burst), per_s, random


def _source(flow: Flow, receiver: str, here: Node, sender: Software) -> str:
    """Returns the source of a stream; streams have the same source if their senders share a schedule or their
    receivers share messages.
    """
    shared = flow.schedule is not None and flow.schedule.kind == "shared"
    whose = f"{here.group}.{flow.name.partition('.')[2]}" if shared else flow.name
    once = flow.spread == "round-robin" or KINDS[sender.kind].costs(sender, [flow]).one_copy
    return whose if once else f"{whose} to {receiver}"


def _hops(
    names: Mapping[Key, str], way: Path, node: Node, by: Software, offered: Offered, message_bytes: int
) -> list[Hop]:
    tagged = by.spec.get("pcp") is not None or any(card.vlan for card in node.interfaces)
    head = ETHERNET_BYTES + (TAG_BYTES if tagged or not offered.over_ip else 0)
    return [
        Hop(
            names[_key(d)],
            8.0 * _wire_bytes(way, node, offered, message_bytes, head),
            _band(d, by, offered),
        )
        for d in way.directions
    ]


def _wire_bytes(way: Path, node: Node, offered: Offered, message_bytes: int, head: int) -> int:
    """Returns the bytes that a message takes on a link: all its IP fragments with their headers, or one frame
    of a protocol without IP.
    """
    if not offered.over_ip:
        return message_bytes + head
    ip = IP_BYTES[family(way.addresses[-1])]
    room = (min(card.mtu for card in node.interfaces) - ip) // FRAGMENT_BYTES * FRAGMENT_BYTES
    frames = -(-message_bytes // room)
    return message_bytes + frames * (ip + head)


def _band(direction: Direction, by: Software | None, offered: Offered | None) -> int:
    """Returns the class of a direction's queue for packets of the software `by` (None: for unmarked packets):
    the first band that matches, or else the band for the rest; 0 without bands.
    """
    bands = direction.impairment.queue.bands if direction.impairment.queue else ()
    matching = (i for i, band in enumerate(bands) if by is not None and _matches(band, by, offered))
    return next(matching, next((i for i, band in enumerate(bands) if band.rest), 0))


def _matches(band: Band, by: Software, offered: Offered | None) -> bool:
    own = offered.pcp if offered is not None else None
    if (by.spec.get("pcp") if own is None else own) in band.pcp:
        return True
    if offered is not None and not offered.over_ip:
        return False
    ports = {by.spec.get("listen"), *(one["port"] for one in by.spec.get("to") or () if "port" in one)}
    return by.spec.get("dscp") in band.dscp or bool(ports & set(band.ports))


def assumptions(plan: Plan, node_s: float = 0.0) -> list[str]:
    """Returns the assumptions of the bounds as sentences for the report."""
    ends = f"at most {text_ns(round(node_s * 1e9))} to send a message, and as much to take one"
    said = [
        f"end nodes take {ends if node_s else 'no time: a message is on its wire when it is scheduled'}",
        "nothing else is on the links: no ARP, no routing, no commands' traffic without `flows`",
        "lost messages have no delay; wires that the file does not name take none",
    ]
    if any(event.action in ("impair", "link-down", "link-up") for event in plan.events):
        said.append("links stay as planned: the timeline changes them, and the bounds do not know it")
    return said
