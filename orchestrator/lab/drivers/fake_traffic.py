"""Invents the messages of the fake driver: those of the plan's flows, over a network without loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from contract.plan import Flow, Plan, Session
from contract.plan.flows import Schedule
from orchestrator.lab.admission import unwelcome
from orchestrator.lab.clock import MILLISECOND, SECOND

TRANSIT_NS = MILLISECOND
MOST_MESSAGES = 20_000  # most messages of a flow, so that a long fake run takes milliseconds
GREEDY_BPS = 100_000_000
SEGMENT_BYTES = 1448


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent; at_ns: its time after t0."""

    number: int  # number of the message's flow
    flow: Flow
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """The messages of a plan's flows until `end_ns` after t0, with an additional one-way delay of
    `delay_ns`.
    """

    plan: Plan
    t0_ns: int
    end_ns: int
    delay_ns: int

    def messages(self) -> list[Sent]:
        """Returns the messages of all scheduled flows in the order of time, at most about MOST_MESSAGES of
        each flow; omits those of clients that the plan expects to be refused.
        """
        barred = unwelcome(self.plan)
        found = [
            Sent(number, flow, seq, at_ns)
            for number, flow in enumerate(self.plan.flows)
            if flow.schedule is not None and flow.sender not in barred
            for seq, at_ns in enumerate(_times(flow, flow.schedule, self.end_ns))
        ]  # fmt: skip
        return sorted(found, key=lambda s: (s.at_ns, s.number))

    def receivers(self, flow: Flow) -> list[str]:
        """Returns the endpoints that receive each message of the flow, without repetition; of a group its
        first member.
        """
        return list(dict.fromkeys(members[0] for members in self._owed(flow)))

    def _owed(self, flow: Flow) -> Iterator[tuple[str, ...]]:
        """Yields each receiver of the flow; of a group all members."""
        for name in (name for d in flow.deliveries for name in self.plan.receivers[d.receivers]):
            yield self.plan.shared.get(name, (name,))

    def records(self, sent: Iterable[Sent]) -> Iterator[str]:
        """Yields the lines of raw/messages.csv for sessions, messages and bulk transfers."""
        yield from self._sessions()
        for message in sent:
            yield from self._fate(message)
        for number, flow in enumerate(self.plan.flows):
            if flow.schedule is None:
                yield from self._progress(number, flow)

    def _fate(self, message: Sent) -> Iterator[str]:
        """Yields the records of one message, which arrives at all its receivers, and of its replies."""
        flow, at_ns = message.flow, self.t0_ns + message.at_ns
        there_ns = at_ns + self._latency_ns(message)
        back_ns = there_ns + self._latency_ns(message)
        awaited = flow.pattern == "request" or any(d.guarantee.lossless for d in flow.deliveries)
        end = f"{back_ns},1,settled" if awaited else "0,1,sent"
        yield f"S,{message.number},{message.seq},{flow.payload.bytes},{at_ns},{at_ns},{end}"
        for receiver in self.receivers(flow):
            yield f"R,{message.number},{message.seq},{receiver},0,{there_ns},0"
            if flow.pattern == "request":
                yield f"R,{message.number},{message.seq},{receiver},1,{back_ns},0"

    def _latency_ns(self, message: Sent) -> int:
        return 2 * TRANSIT_NS + self.delay_ns + (message.seq * 7919) % TRANSIT_NS

    def _sessions(self) -> Iterator[str]:
        reached = {one for flow in self.plan.flows for members in self._owed(flow) for one in members}
        barred = unwelcome(self.plan)
        for session in sessions(self.plan).values():
            if session.listens:
                yield f"C,{session.endpoint},listening,{self.t0_ns},"
                continue
            if session.endpoint in barred:
                yield f"C,{session.endpoint},failed,{self.t0_ns + session.connect_ns},refused: as planned"
                continue
            steps = ["connecting", "connected", *(["subscribed"] if session.endpoint in reached else [])]
            for place, what in enumerate(steps):
                at_ns = self.t0_ns + session.connect_ns + place * TRANSIT_NS
                yield f"C,{session.endpoint},{what},{at_ns},"

    def _progress(self, number: int, flow: Flow) -> Iterator[str]:
        """Yields the progress records of a flow without schedule (it sends as fast as possible): each second
        and at the end.
        """
        end_ns = min(flow.stop_ns, self.end_ns)
        marks = [*range(flow.start_ns + SECOND, end_ns, SECOND), end_ns]
        for at_ns in marks if end_ns > flow.start_ns else ():
            carried = (at_ns - flow.start_ns) * GREEDY_BPS // (8 * SECOND)
            counts, rtt_ns = f"{carried},{carried // SEGMENT_BYTES}", 2 * (TRANSIT_NS + self.delay_ns)
            yield f"B,{number},{flow.sender},0,{self.t0_ns + at_ns},{counts},,0,{rtt_ns}"
            for receiver in self.receivers(flow):
                yield f"B,{number},{receiver},1,{self.t0_ns + at_ns},{counts},0,,"


def sessions(plan: Plan) -> dict[str, Session]:
    """Maps each endpoint of the plan to its session."""
    return {s.session.endpoint: s.session for n in plan.nodes for s in n.software if s.session is not None}


def addresses(plan: Plan) -> Mapping[str, str]:
    """Maps endpoints and nodes to the node's first address; omits nodes without a network."""
    found = {node.name: node.interfaces[0].address for node in plan.nodes if node.interfaces}
    places = {s.session.endpoint: n.name for n in plan.nodes for s in n.software if s.session is not None}
    return found | {endpoint: found[node] for endpoint, node in places.items() if node in found}


def _times(flow: Flow, schedule: Schedule, end_ns: int) -> list[int]:
    """Returns the sending times (ns after t0) of a flow before `end_ns`: the times of its sender's schedule
    that belong to this flow, each repeated `burst` times. Adds no more once there are MOST_MESSAGES.
    """
    ends_ns = [rate.from_ns for rate in schedule.rates[1:]] + [flow.stop_ns]
    found: list[int] = []
    tick = 0
    for rate, until_ns in zip(schedule.rates, ends_ns, strict=True):
        place = 1
        while rate.per_s > 0 and (at_ns := rate.from_ns + round(place * SECOND / rate.per_s)) < until_ns:
            place, tick = place + 1, tick + 1
            if at_ns >= min(end_ns, flow.stop_ns) or len(found) >= MOST_MESSAGES:
                return found
            if at_ns >= flow.start_ns and _owner(schedule, tick) == schedule.index:
                found += [at_ns] * schedule.burst
    return found


def _owner(schedule: Schedule, tick: int) -> int:
    if schedule.kind == "own":
        return schedule.index
    return (tick * 2_654_435_761 + schedule.seed) % schedule.count
