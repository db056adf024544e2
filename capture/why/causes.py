"""Names the causes that made the slowest messages of a run slow, or dropped messages, from the parts of their
time.

A cause is something that a run can do without: a flow, a link's loss, a limit, an event. Whether the messages
are faster without it is not known from one run; `vnet why --without CAUSE` runs it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from capture.why.answer import Answer, Run
from capture.why.lost import Lost
from capture.why.parts import (
    AGAIN,
    EARLIER,
    JITTER,
    LATE,
    LOOKUP,
    PROGRAM,
    QUEUE,
    QUEUE_OR_JITTER,
    RECEIVER,
    SENDING,
    SOCKET,
    UNEXPLAINED,
    Part,
)
from capture.why.places import Element
from contract.plan import WAYS, Flow, Impairment, Plan
from contract.verdict import HOLDS

LEAST_SHARE = 0.2  # share of the slowest messages' time; a cause with a smaller share is not named
LEAST_NS = 1_000_000  # least time (ns) of a cause in each message; the machine's ordinary work takes less
# share of the bytes ahead in a queue; with a larger share one node's flow is the cause, not the link's rate
MOST = 0.5
SLOW = 0.01  # the slowest messages of a class are this share of its messages
IN_NODE = (LATE, SOCKET, PROGRAM, RECEIVER)


class Cause(NamedTuple):
    """A kind of cause with the name of its flow, link or node; its text is the argument of `--without`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


MEANING = {
    "flow": "the flow's frames are ahead in a queue",
    "rate": "the link's rate is too low for what it carries",
    "queue": "the link's queue is full and drops",
    "loss": "the link loses frames by chance",
    "jitter": "the link's delay varies",
    "cut": "the timeline cuts the link",
    "nagle": "the node's sockets hold small segments until the peer's delayed acknowledgement",
    "cpu": "the node's CPU limit",
    "events": "the timeline stops, limits or restarts programs of the node",
    "lookup": "the node looks up a neighbour's address (ARP)",
    "node": "the node's programs; no run without them can be made",
}


@dataclass(frozen=True, slots=True)
class Named:
    """A cause of a set of messages. It has a share of their time, and the number of messages that it
    dropped.
    """

    cause: Cause
    share: float  # share of the time of the slowest messages that arrived
    foretold_ns: float  # mean time (ns) by which the slowest messages would wait less without the cause
    lost: int


@dataclass(frozen=True, slots=True)
class Causes:
    """The causes of a set of messages, the most important first, and the time and losses without a cause.

    Attributes:
        unexplained_share: share (0 to 1) of the time of the slowest arrived messages that no capture or
            record explains; 0 if it is too small to contain a cause.
        lost_untold: number of lost messages without a known owner.
    """

    named: list[Named]
    unexplained_share: float
    lost_untold: int

    @property
    def untold(self) -> bool:
        """Returns whether the unexplained time or losses may have a further cause."""
        return self.unexplained_share > 0 or self.lost_untold > 0


def slowest(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the slowest hundredth of the messages that arrived, the slowest first; at least one."""
    arrived = rows.drop_nulls(["receiver", "total_ns"]).sort("total_ns", descending=True, maintain_order=True)
    return arrived.head(math.ceil(SLOW * arrived.height))


def causes(run: Run, rows: pl.DataFrame) -> Causes:
    """Returns the causes of the slowest and the lost messages among `rows`, the most important first: causes
    that dropped messages come first, then the others by their time. If there are no causes and nothing is
    unexplained, the lab's delays and rates took the time.
    """
    naming = _Naming(run)
    times: dict[Cause, int] = {}
    slow, whole, unexplained, untold = slowest(rows), 0, 0, 0
    for answer in run.answers(slow, behind=True):
        whole += answer.latency_ns or 0
        unexplained += sum(part.length_ns for part in answer.parts if part.what == UNEXPLAINED)
        for part in answer.parts:
            if cause := naming.of_part(part, answer):
                times[cause] = times.get(cause, 0) + part.length_ns
    lost: dict[Cause, int] = {}
    gone = rows.filter(pl.col("receiver").is_not_null() & pl.col("total_ns").is_null())
    for answer in run.answers(gone):
        if answer.lost and (cause := naming.of_lost(answer.lost, answer)):
            lost[cause] = lost.get(cause, 0) + 1
        else:
            untold += 1

    def enough(ns: int) -> bool:
        return ns > 0 and ns >= LEAST_SHARE * whole and ns >= LEAST_NS * slow.height

    long = {one: ns for one, ns in times.items() if enough(ns)}
    found = [
        Named(one, times.get(one, 0) / whole if whole else 0.0, long.get(one, 0) / max(slow.height, 1), gone)
        for one in dict.fromkeys([*long, *lost])
        for gone in (lost.get(one, 0),)
    ]
    named = sorted(found, key=lambda one: (-one.lost, -one.share, one.cause))
    return Causes(named, unexplained / whole if enough(unexplained) else 0.0, untold)


class _Naming:
    """Finds the name of the cause of a part, or of a loss."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._plan: Plan = run.plan
        self._homes = run.plan.homes()
        self._nodes = {node.name: node for node in run.plan.nodes}

    def of_part(self, part: Part, answer: Answer) -> Cause | None:
        """Returns the cause of a part; None for the lab's own delays and for unexplained time."""
        place = part.where.split(",")[0].split()[1:]
        if not place:
            return None
        if part.what == QUEUE:
            return self._ahead(part, answer, place[0])
        if part.what in (JITTER, QUEUE_OR_JITTER):
            return Cause("jitter", place[0])
        if part.what == SENDING:
            return Cause("rate", place[0])
        if part.what == LOOKUP:
            return Cause("lookup", place[0])
        if part.what in (AGAIN, EARLIER):
            return self._dropped(part)
        return self._in_node(part, place[0]) if part.what in IN_NODE else None

    def of_lost(self, lost: Lost, answer: Answer) -> Cause | None:
        """Returns the cause of a loss, by the loss's first owner; None if its owner is unknown."""
        if lost.verdict != HOLDS or not lost.owners:
            return None
        owner = lost.owners[0]
        where, _, what = owner.partition(": ")
        name = where.split()[-1] if not where.startswith("link") else where.split()[1]
        if where.startswith("link"):
            kinds = {"netem's": "loss", "corrupted": "loss", "cut": "cut"}
            kind = kinds.get(what.split()[0], "queue")
            return self._full(name, lost, answer) if kind == "queue" else Cause(kind, name)
        if owner.startswith("address lookup"):
            return Cause("lookup", name)
        return self._troubled(name, lost.last_ns) or self._cut_before(lost.last_ns) or Cause("node", name)

    def _full(self, link: str, lost: Lost, answer: Answer) -> Cause:
        """Returns the cause of a full queue. It is a flow, if one node sent most of the packets that passed
        the queue before a loss; or the link's rate, if all flows together offer more than that.
        """
        most = max(one.rate_bps for name, _, one in self._plan.impairments() if name == link)
        home = self._homes.get(answer.sender, "")
        offered = {flow: self._offered(flow) for flow in self._plan.flows if self._over(flow, link)}
        others = [(bps, flow.name) for flow, bps in offered.items() if self._homes[flow.sender] != home]
        bps, name = max(others, default=(0.0, ""))
        if name and bps >= MOST * most:
            return Cause("flow", name)
        # a greedy flow adapts to the rate, so it is not counted
        paced = sum(bps for bps in offered.values() if math.isfinite(bps))
        return Cause("rate" if paced > most else "queue", link)

    def _over(self, flow: Flow, link: str) -> bool:
        """Returns whether a flow's messages pass the link."""
        source = self._homes.get(flow.sender)
        if source is None:
            return False
        to = [
            self._homes.get(name) for one in flow.deliveries for name in self._plan.receivers[one.receivers]
        ]
        ends = [self._nodes[name].interfaces[0].address for name in to if name]
        ways = [self._run.places.way(source, address) for address in ends]
        return any(one.kind == "link" and one.name == link for way in ways if way for one in way)

    def _offered(self, flow: Flow) -> float:
        """Returns the bit/s that a flow sends by its schedule; infinite for a greedy flow."""
        if flow.schedule is None:
            paced = [
                s.spec.get("rate_bps")
                for node in self._plan.nodes
                for s in node.software
                if s.session and s.session.endpoint == flow.sender
            ]
            return float(paced[0]) if paced and paced[0] else math.inf
        one = flow.schedule
        return 8 * flow.payload.bytes * one.burst * max(r.per_s for r in one.rates) / one.count

    def _ahead(self, part: Part, answer: Answer, link: str) -> Cause:
        """Returns the flow whose bytes were ahead in a queue: that of the node with most of these bytes, if
        it is another node.
        """
        whole = sum(part.behind.values())
        node = next(iter(part.behind), "")
        home = self._homes.get(answer.sender, "")
        if node and node != home and part.behind[node] >= MOST * whole:
            own = [one for one in self._plan.flows if self._homes.get(one.sender) == node]
            if own:
                return Cause("flow", max(own, key=self._offered).name)
        return Cause("rate", link)

    def _dropped(self, part: Part) -> Cause | None:
        """Returns why frames of a connection were retransmitted: a cut, random loss, or a full queue of a
        link.
        """
        links = self._plan.links
        begin, end = part.begin_ns, part.begin_ns + part.length_ns
        if cut := self._cut_before(end, begin):
            return cut
        for link in links:
            if any(_loses(self._run.settings.at(Element("link", link.name, way), begin)) for way in WAYS):
                return Cause("loss", link.name)
        return next((Cause("queue", one.name) for one in links if self._run.dropped.get(one.name)), None)

    def _cut_before(self, end_ns: int, begin_ns: int | None = None) -> Cause | None:
        """Returns the event that cut the link during a time span, or at a moment."""
        times = (end_ns,) if begin_ns is None else (begin_ns, (begin_ns + end_ns) // 2)
        for link in self._plan.links:
            if any(self._run.settings.down(link.name, t_ns) for t_ns in times):
                return Cause("cut", link.name)
        return None

    def _in_node(self, part: Part, name: str) -> Cause:
        """Returns why a message waited in a node: an event, the CPU limit, a cut, a loss, or small
        segments.
        """
        end = part.begin_ns + part.length_ns
        if found := self._troubled(name, end):
            return found
        if part.what == SOCKET:
            if cut := self._cut_before(end, part.begin_ns):
                return cut
            # A connection that lost frames sends later data only after these have arrived.
            if name in self._run.resent and (again := self._dropped(part)):
                return again
            if any(s.spec.get("nodelay") is False for s in self._nodes[name].software):
                return Cause("nagle", name)
        return Cause("node", name)

    def _troubled(self, name: str, t_ns: int) -> Cause | None:
        """Returns the last event on a node before a time; if there is none, the node's CPU limit."""
        if any(name in targets for at, targets in self._run.power if at <= t_ns):
            return Cause("events", name)
        node = self._nodes.get(name)
        if node and (node.cpu_limit_mhz or node.cpu_limit_cores):
            return Cause("cpu", name)
        return None


def _loses(one: Impairment) -> bool:
    return bool(one.loss or one.gemodel or one.corrupt)
