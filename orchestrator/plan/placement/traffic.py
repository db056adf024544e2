"""Predicts the traffic of a lab's flows between its parts, in bit/s.
A message counts with its payload and the headers of its packets, at the highest rate of its schedule: once
for each receiver if the flow spreads to all, else once in all, divided evenly among the receivers. A reply
counts with its own size. A greedy flow counts with the lowest rate on its path. Acknowledgements and traffic
that programs send without a flow are not predicted.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from contract.plan import Flow, Link, Node

from ...software.kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES
from ...topology.together import Part
from ..paths import Path, Paths

GREEDY_BPS = 10**9  # rate of a greedy flow if no link of its path has a rate
MOST_PAIRS = 200_000  # most pairs of sender and receiver; of more pairs, an even sample is used

Traffic = dict[tuple[Part, Part], float]


def traffic(
    nodes: Sequence[Node],
    links: Sequence[Link],
    paths: Paths,
    flows: Sequence[Flow],
    receivers: Mapping[str, tuple[str, ...]],
    relays: Mapping[str, str],
) -> Traffic:
    """Returns the bit/s from each part (node, or link between segments) to the next one along the paths of
    the flows. If no path is known, the traffic counts directly from the sending to the receiving node.
    relays: for each flow name, the node that relays its messages.
    """
    at = {s.session.endpoint: node.name for node in nodes for s in node.software if s.session is not None}
    between = _Ways(links, paths)
    pairs = _pairs(flows, receivers, relays, at, between)
    found: defaultdict[tuple[Part, Part], float] = defaultdict(float)
    for (a, b), bps in pairs.items():
        for one, other in itertools.pairwise(between.parts(a, b)):
            found[one, other] += bps
    return found


class _Ways:
    """Finds the parts of the lab that packets pass from one node to another."""

    def __init__(self, links: Sequence[Link], paths: Paths) -> None:
        self._paths = paths
        self._link = {
            (way.netns, way.device): link.name
            for link in links
            if link.kind == "segments"
            for way in (link.forward, link.reverse)
        }
        self._hop = cache(self._between)

    def path(self, a: str, b: str) -> Path | None:
        return self._paths.between(a, b)

    def parts(self, a: str, b: str) -> list[Part]:
        """Returns the nodes and links between segments on the path; only the two ends if no path is known."""
        path = self.path(a, b)
        nodes = (a, b) if path is None else path.nodes
        found: list[Part] = [("node", a)]
        for one, other in itertools.pairwise(nodes):
            hop = path if len(nodes) == 2 else self._hop(one, other)
            found += self._links(hop)
            found.append(("node", other))
        return found

    def _between(self, a: str, b: str) -> Path | None:
        return self._paths.between(a, b)

    def _links(self, hop: Path | None) -> Iterator[Part]:
        for way in hop.directions if hop is not None else ():
            if (name := self._link.get((way.netns, way.device))) is not None:
                yield "link", name


def _pairs(
    flows: Sequence[Flow],
    receivers: Mapping[str, tuple[str, ...]],
    relays: Mapping[str, str],
    at: Mapping[str, str],
    ways: _Ways,
) -> dict[tuple[str, str], float]:
    """Returns the bit/s by (sending node, receiving node), with replies as traffic in the other direction. A
    relayed flow counts to the relay, and from there to the receivers; its replies go directly. Flows whose
    sender runs on no node are left out. Of more than MOST_PAIRS receivers, an even sample carries the traffic
    of all.
    """
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    fans: defaultdict[tuple[str, str, bool], float] = defaultdict(float)
    answers: defaultdict[tuple[str, str, bool], float] = defaultdict(float)
    for flow in flows:
        if flow.sender not in at:
            continue
        here, relay = at[flow.sender], relays.get(flow.name)
        bps = _bps(flow, relay, receivers, at, ways)
        source = relay or here
        if relay is not None:
            found[here, relay] += bps
        for name in (delivery.receivers for delivery in flow.deliveries):
            fans[source, name, flow.spread == "all"] += bps
            if flow.reply is not None:
                back = bps * _wire_bytes(flow.reply.bytes) / _wire_bytes(flow.payload.bytes)
                answers[here, name, flow.spread == "all"] += back
    every = sum(len(receivers[name]) for _, name, _ in fans)
    step = -(-every // MOST_PAIRS)
    for table, back in ((fans, False), (answers, True)):
        for (node, name, all_of_them), bps in table.items():
            others = [at[one] for one in receivers[name] if one in at]
            sample = others[::step]
            share = bps * (len(others) if all_of_them else 1) / len(sample) if sample else 0.0
            for other in sample:
                found[(other, node) if back else (node, other)] += share
    return found


def _bps(
    flow: Flow,
    relay: str | None,
    receivers: Mapping[str, tuple[str, ...]],
    at: Mapping[str, str],
    ways: _Ways,
) -> float:
    """Returns the rate of a flow's messages with headers in bit/s, each message counted once. Without a
    schedule (a greedy flow), it is the lowest rate on the path to the relay or the first receiver, or
    GREEDY_BPS without one.
    """
    if flow.schedule is None:
        here = at[flow.sender]
        names = [at[n] for d in flow.deliveries for n in receivers[d.receivers] if n in at]
        goal = relay or (names[0] if names else here)
        path = ways.path(here, goal) if goal != here else None
        return float((path.bottleneck_bps if path is not None else 0) or GREEDY_BPS)
    rate = max(step.per_s for step in flow.schedule.rates) * flow.schedule.burst / flow.schedule.count
    return rate * 8 * _wire_bytes(flow.payload.bytes)


def _wire_bytes(payload_bytes: int) -> int:
    packets = max(-(-payload_bytes // TCP_SEGMENT_BYTES), 1)
    return payload_bytes + packets * TCP_HEADERS_BYTES
