"""Plans static neighbour entries for those nodes where resolution by ARP or NDP would lose messages.

While the kernel resolves a neighbour, it queues 212,992 bytes of frames for it (unres_qlen_bytes in
net/core/neighbour.c: some 92 frames of 1,000 bytes) and drops the oldest ones beyond that. It sends three
requests, one second apart, and then gives up. On a short link without losses this loses no message. On a link
that may lose the request or its answer, frames wait for a second after a loss; after three losses all of them
are lost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from contract.codec import build
from contract.plan import Direction, Flow, Impairment, Neighbour, Node, Plan

from .netem import FRAME_BYTES
from .paths import Hop, Paths

FRAMES = 64  # frames during a resolution; with more, some may be lost: two thirds of what the kernel queues
SHORT_NS = 10**6  # ns; no queue overflows in this time
LONG_NS = 500 * 10**6  # half of the second after which the kernel repeats the request
RETRY_NS = 10**9  # time after which the kernel repeats the request
# share of lost requests and answers from which an entry is planned; three in a row are then lost once in a
# hundred times
LOSSY = 0.2
HEADERS_BYTES = 48  # headers of IPv6 and UDP
ASKED_BYTES = 60  # bytes of an ARP frame
Asked = tuple[str, str]  # a node, and the address of the neighbour that it resolves


def known(plan: Plan, relays: Mapping[str, str]) -> dict[str, tuple[Neighbour, ...]]:
    """Returns, by node, the static neighbour entries for the hops of flows, routes and links between nodes
    where resolution may lose messages, in both directions; empty if no link has an impairment. NICs are left
    out.

    `relays`: for each flow name, the node that relays its messages.
    """
    if not any(way.impairment.present for link in plan.links for way in (link.forward, link.reverse)):
        return {}
    paths, losses = Paths.of(plan), _losses(plan)
    frames = _frames(plan, paths, relays)
    found: dict[str, dict[Neighbour, None]] = {}
    for asked in dict.fromkeys([*frames, *_next_hops(plan.nodes), *_wires(plan)]):
        hop = paths.hop(*asked, ASKED_BYTES)
        if hop is None or hop.here.nic or hop.there.nic:
            continue
        if _loses(hop, frames[asked], losses):
            for node, neighbour in _both(asked[0], hop):
                found.setdefault(node, {})[neighbour] = None
    return {node: tuple(sorted(some, key=lambda n: n.address)) for node, some in found.items()}


def _loses(hop: Hop, per_s: int, losses: Mapping[Direction, float]) -> bool:
    """Returns whether messages may be lost while the neighbour is resolved: over a hop with a long round trip
    or high loss, or with many frames during the wait. `per_s`: number of frames per second to the neighbour.
    """
    lost = 1.0 - math.prod(1.0 - losses.get(way, 0.0) for way in hop.ways)
    wait_ns = max(hop.round_ns, RETRY_NS if lost > 0.0 else 0)
    if wait_ns < SHORT_NS:
        return False
    return hop.round_ns >= LONG_NS or lost >= LOSSY or per_s * wait_ns / 1e9 >= FRAMES


def _losses(plan: Plan) -> dict[Direction, float]:
    """Returns the highest share of lost or corrupted frames of each direction that has one at any time, by
    file, timeline or trace.
    """
    found: dict[Direction, float] = {}
    for link in plan.links:
        for name, way in (("forward", link.forward), ("reverse", link.reverse)):
            asked = [way.impairment, *_by_events(plan, link.name, name)]
            shares = [_lost(one.loss, one.gemodel, one.corrupt) for one in asked]
            states = plan.traces[way.trace].states if way.trace is not None else ()
            shares += [state.loss or 0.0 for state in states]
            if (most := max(shares)) > 0.0:
                found[way] = most
    return found


def _by_events(plan: Plan, link: str, direction: str) -> Iterator[Impairment]:
    for event in plan.events:
        if event.action == "impair" and link in event.targets and event.args.get(direction) is not None:
            yield build(Impairment, event.args[direction])


def _lost(loss: float, gemodel: tuple[float, float, float, float] | None, corrupt: float) -> float:
    """Returns the long-run share of frames lost in one direction. Corrupted frames count as lost, since ARP
    has no checksum.
    """
    if gemodel is not None:
        bad, good, in_bad, in_good = gemodel
        share = bad / (bad + good) if bad + good else 0.0
        loss = share * in_bad + (1.0 - share) * in_good
    return 1.0 - (1.0 - loss) * (1.0 - corrupt)


def _both(node: str, hop: Hop) -> tuple[tuple[str, Neighbour], tuple[str, Neighbour]]:
    """Returns the entries of the hop's two nodes for each other."""
    return (
        (node, Neighbour(hop.there.address, hop.there.mac, hop.here.name)),
        (hop.node, Neighbour(hop.here.address, hop.here.mac, hop.there.name)),
    )


def _frames(plan: Plan, paths: Paths, relays: Mapping[str, str]) -> Counter[Asked]:
    """Returns the frames per second that flows send to each neighbour at their highest rate; a burst that is
    sent less often than once a second counts as if it were sent every second. Flows without a schedule count
    as 0.
    """
    at = {s.session.endpoint: n.name for n in plan.nodes for s in n.software if s.session is not None}
    ways: dict[tuple[str, str], list[Asked]] = {}
    found: Counter[Asked] = Counter()
    for flow in plan.flows:
        here = at.get(flow.sender)
        if here is None:
            continue
        per_s = _frames_per_s(flow, flow.payload.bytes)
        back_per_s = 0 if flow.reply is None else _frames_per_s(flow, flow.reply.bytes)
        for a, b, forth in _legs(plan, flow, here, at, relays.get(flow.name)):
            if (a, b) not in ways:
                ways[a, b] = _hops(paths, a, b)
            for asked in ways[a, b]:
                found[asked] += per_s if forth else back_per_s
    return found


def _legs(
    plan: Plan, flow: Flow, here: str, at: Mapping[str, str], relay: str | None
) -> Iterator[tuple[str, str, bool]]:
    """Yields (from, to, forward) for each path of the flow, by way of the relay; forward is True for messages
    and False for replies, which go directly.
    """
    if relay is not None and relay != here:
        yield here, relay, True
    for delivery in flow.deliveries:
        for name in plan.receivers[delivery.receivers]:
            there = at.get(name)
            if there is not None and there != (relay or here):
                yield relay or here, there, True
            if there is not None and there != here and flow.reply is not None:
                yield there, here, False


def _hops(paths: Paths, a: str, b: str) -> list[Asked]:
    path = paths.between(a, b)
    return [] if path is None else list(zip(path.nodes, path.addresses, strict=False))


def _frames_per_s(flow: Flow, payload_bytes: int) -> int:
    if flow.schedule is None:
        return 0  # a greedy flow uses a connection, whose first packet waits alone
    packets = 1 + (payload_bytes + HEADERS_BYTES) // (1518 - FRAME_BYTES)
    fastest = max(step.per_s for step in flow.schedule.rates) / flow.schedule.count
    return round(packets * flow.schedule.burst * max(fastest, 1.0))


def _next_hops(nodes: Sequence[Node]) -> Iterator[Asked]:
    for node in nodes:
        yield from ((node.name, via) for route in node.every_route for via in route.via)


def _wires(plan: Plan) -> Iterator[Asked]:
    cards = {(node.name, card.segment): card for node in plan.nodes for card in node.interfaces}
    for link in plan.links:
        if link.kind == "nodes" and (far := cards.get((link.b, link.name))) is not None:
            yield from ((link.a, address) for address in far.addresses)
