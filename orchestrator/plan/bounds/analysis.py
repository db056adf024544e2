"""Computes a delay bound for each stream by total flow analysis of a feed-forward network, server by server.

Streams that come over one link come no faster than its rate (grouping: Grieu, 2004, TFA++ of Mifdaoui and
Leydier, 2017), so that their bursts count one after the other.

A server sees all messages of a class as one aggregate and has one delay bound for that class. After each
server the burst of a stream grows by the spread of its delays so far. The time that end nodes need is added
before the first server, where it makes bursts largest. The method is that of Le Boudec and Thiran, section
6.2 (aggregate scheduling), with theorem 1.4.2 for the bound of each server. For a server that sends in any
order, the bound is its longest busy period. Servers receive and send whole messages (packetised), so bursts
hold whole messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from . import credit
from .curves import Bucket, Group, RateLatency, after_priority, busy_s
from .network import Bound, Hop, Server, Stream


@dataclass(slots=True)
class _Way:
    """A stream with its least and worst delay up to the server under analysis, each server's share of the
    worst one, and the reason if it has no bound.
    """

    stream: Stream
    least_s: float = 0.0
    worst_s: float = 0.0
    why: str = ""
    parts: list[tuple[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Class:
    """The arrival curve of all messages of one class at a server, or the reason why no curve bounds them.

    groups: the same by the link over which they come. frames: the same in frames. shortest_bits: a length
    that no frame of the class falls below.
    """

    arrivals: Bucket
    unbounded: str  # the reason why no curve bounds it
    groups: tuple[Group, ...] = ()
    frames: Bucket = field(default_factory=Bucket)
    shortest_bits: float = math.inf


def analyse(servers: Iterable[Server], streams: Sequence[Stream]) -> list[Bound]:
    """Returns one bound for each stream, in the order of `streams`; if `worst_s` of a bound is None, the
    bound has the reason: an unknown curve, an unstable server, a stream without a bound at a server, or a
    cycle of servers.
    """
    known = {server.name: server for server in servers}
    ways = [_Way(stream, worst_s=stream.ends_s, why=stream.unknown) for stream in streams]
    at: dict[str, list[tuple[_Way, int]]] = {}
    for way in ways:
        for place, hop in enumerate(way.stream.hops):
            at.setdefault(hop.server, []).append((way, place))
    order, cycle = _order(streams)
    for name in order:
        _serve(known, known[name], at[name])
    for way in ways if cycle else ():
        if not way.why and any(hop.server not in order for hop in way.stream.hops):
            way.why = f"what waits at each of these depends on the next: {'; '.join(cycle)} (a cycle)"
    return [
        Bound(way.stream, way.least_s, None if way.why else way.worst_s, way.why, tuple(way.parts))
        for way in ways
    ]


def _order(streams: Sequence[Stream]) -> tuple[list[str], tuple[str, ...]]:
    """Returns the servers in topological order of the streams, and a cycle of servers if there is one, else
    (). With a cycle, the order holds only the servers that no cycle feeds.
    """
    graph: dict[str, set[str]] = {}
    for stream in streams:
        names = [hop.server for hop in stream.hops]
        for before, name in zip([None, *names], names, strict=False):
            graph.setdefault(name, set()).update({before} if before is not None else set())
    try:
        return list(TopologicalSorter(graph).static_order()), ()
    except CycleError as error:
        return _acyclic(graph), tuple(error.args[1])


def _acyclic(graph: Mapping[str, set[str]]) -> list[str]:
    """Returns the servers that are not part of a cycle and that no cycle feeds, in topological order."""
    done: list[str] = []
    while ready := [name for name in graph if name not in done and graph[name] <= set(done)]:
        done += ready
    return done


def _serve(known: Mapping[str, Server], server: Server, here: Sequence[tuple[_Way, int]]) -> None:
    """Adds the server's delay, jitter and waiting time to the delays of every stream that passes it, or the
    reason why there is no bound.
    """
    least = max(server.delay_s - server.jitter_s, 0.0)
    latest = server.delay_s + server.jitter_s
    classes = _classes(known, server, here, latest - least)
    for way, place in here:
        band = _band(server, way.stream.hops[place])
        wait_s, why = _wait(server, classes, band)
        way.why = way.why or why
        way.least_s += least
        way.worst_s += latest + wait_s
        way.parts.append((server.name, latest + wait_s))


def _band(server: Server, hop: Hop) -> int:
    """Returns the class of a hop; 0 at a server that does not distinguish classes."""
    return hop.band if server.order in ("priority", "guarantee", "credit") else 0


def _classes(
    known: Mapping[str, Server], server: Server, here: Sequence[tuple[_Way, int]], jitter_s: float
) -> dict[int, _Class]:
    """Returns, by class, the arrivals after the server's delay; streams of one source share one arrival
    curve.
    """
    over: dict[int, dict[str, Group]] = {}
    groups: dict[tuple[int, str, int], list[tuple[_Way, int]]] = {}
    for way, place in here:
        hop = way.stream.hops[place]
        # The messages of a source and the answers to them differ in length and in their servers.
        turn = sum(one.server == server.name for one in way.stream.hops[:place])
        groups.setdefault((_band(server, hop), way.stream.source, turn), []).append((way, place))
    classes: dict[int, _Class] = {}
    for (band, _, _), members in groups.items():
        before = classes.get(band, _Class(Bucket(), ""))
        bits = [way.stream.hops[place].bits for way, place in members]
        frames = [math.ceil(one / server.frame_bits) if server.frame_bits else 1 for one in bits]
        unbounded = next(
            (f"{w.stream.name}, which has no bound, is there too" for w, _ in members if w.why), ""
        )
        added = Bucket() if unbounded else _together(members, jitter_s)
        each = max(frames) / max(bits) if max(bits) else 0.0
        shortest = min(b if n == 1 else 0.0 for b, n in zip(bits, frames, strict=True))
        came = {_before(way.stream, place) for way, place in members}
        link = came.pop() if len(came) == 1 else ""
        held_s = jitter_s + max(way.stream.ends_s for way, _ in members)
        so_far = over.setdefault(band, {}).get(link, (Bucket(), _line(known, link, 0.0)))
        line = _line(known, link, held_s)
        if so_far[1] is not None and line is not None and so_far[1].bits > line.bits:
            line = so_far[1]
        over[band][link] = (so_far[0] + added, line)
        classes[band] = _Class(
            before.arrivals + added,
            before.unbounded or unbounded,
            tuple(over[band].values()),
            before.frames + Bucket(added.bits * each, added.bps * each),
            min(before.shortest_bits, shortest),
        )
    return classes


def _before(stream: Stream, place: int) -> str:
    """Returns the link over which a stream comes to a hop; "" if a node sends it there."""
    return "" if not place or stream.hops[place].answers else stream.hops[place - 1].server


def _line(known: Mapping[str, Server], link: str, held_s: float) -> Bucket | None:
    """Returns the arrival curve of all that comes over a link and is then held up by at most `held_s`; None
    if none is known.
    """
    server = known.get(link)
    if server is None or not server.line_bps:
        return None
    return Bucket(server.line_bits, server.line_bps).spread(held_s)


def _together(members: Sequence[tuple[_Way, int]], jitter_s: float) -> Bucket:
    """Returns the arrival curve of all streams of one source after the server's delay; they carry the same
    messages, which count once.
    """
    bits = max(way.stream.hops[place].bits for way, place in members)
    burst = max(way.stream.burst for way, _ in members)
    per_s = max(way.stream.per_s for way, _ in members)
    spread = max(way.worst_s for way, _ in members) - min(way.least_s for way, _ in members)
    return Bucket(burst * bits, per_s * bits).spread(spread + jitter_s)


def _wait(server: Server, classes: Mapping[int, _Class], band: int) -> tuple[float, str]:
    """Returns the longest time (s) that a message of class `band` waits and is sent at the server, and "".
    Without a bound it returns infinity and the reason.
    """
    if unknown := server.unknown or server.unknown_of.get(band):
        return math.inf, f"{server.name}: {unknown}"
    before = [one for other, one in classes.items() if _matters(server, other, band)]
    unbounded = next((one.unbounded for one in before if one.unbounded), "")
    if unbounded:
        return math.inf, f"{server.name}: {unbounded}"
    arrivals = classes[band].arrivals
    if server.order == "any":
        load, wait = arrivals.bps / server.bps, busy_s(server.bps, arrivals)
    else:
        serves = _service(server, classes, band)
        load = arrivals.bps / serves.bps if serves.bps > 0 else math.inf
        wait = serves.delay_of_groups_s(classes[band].groups)
    if math.isinf(wait):
        used = "" if math.isinf(load) else f" by {100 * load:.3g} %"
        whose = "" if server.order in ("fifo", "any") else "what the class is left or guaranteed of "
        return math.inf, f"{server.name}: {whose}its rate is used{used}: unstable"
    return wait, ""


def _matters(server: Server, other: int, band: int) -> bool:
    """Returns whether the arrivals of class `other` count for class `band`: the same class, or one of higher
    priority that no credit limits.
    """
    if server.order == "credit" and other < band:
        return not server.guarantees_bps[other]
    return other == band or (server.order == "priority" and other < band)


def _service(server: Server, classes: Mapping[int, _Class], band: int) -> RateLatency:
    """Returns the service curve that a class has at a server of any order but `any`."""
    # a frame of another class may be in transmission when the message arrives
    if server.order == "guarantee":
        return RateLatency(server.guarantees_bps[band], server.frame_bits / server.bps)
    if server.order == "fifo":
        return RateLatency(server.bps)
    if server.order == "credit":
        return _credited(server, classes, band)
    above = sum((one.arrivals for other, one in classes.items() if other < band), Bucket())
    return after_priority(server.bps, above, server.frame_bits)


def _credited(server: Server, classes: Mapping[int, _Class], band: int) -> RateLatency:
    """Returns the service of a class behind credit-based shapers: of its own, or of the classes above it."""
    shaper = credit.Shaper(server.bps, tuple(filter(None, server.guarantees_bps)), server.frame_bits)
    if server.guarantees_bps[band]:
        # frames of a class without a curve come at most as fast as the link sends the shortest ones
        unknown = server.bps / credit.SHORTEST_BITS
        frames = sum(
            (Bucket(0.0, unknown) if one.unbounded else one.frames for one in classes.values()), Bucket()
        )
        return shaper.service(band, classes[band].shortest_bits, frames)
    above = sum((shaper.output(place) for place in range(len(shaper.slopes_bps))), Bucket())
    above += sum(
        (o.arrivals for b, o in classes.items() if b < band and not server.guarantees_bps[b]), Bucket()
    )
    return after_priority(server.bps, above, server.frame_bits)
