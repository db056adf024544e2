"""Divides the time of a message into parts that follow each other without gap and add up to it exactly.

Time that captures and plan do not explain is a part of its own, `unexplained`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from capture.why.frames import Lookup
from capture.why.legs import Leg
from capture.why.places import Element
from capture.why.settings import Settings
from contract.plan import Impairment

LATE, SOCKET, LOOKUP, AGAIN = "program late", "socket", "address lookup", "retransmission"
QUEUE, JITTER, QUEUE_OR_JITTER = "queue", "jitter", "queue or jitter"
SENDING, TRAVEL, EARLIER = "serialisation", "propagation", "earlier segment"
PROGRAM, RECEIVER, UNEXPLAINED = "program", "receiver", "unexplained"
MEANING = {
    LATE: "from the scheduled time until the sender's program had handed the message over",
    SOCKET: "in the sender's socket and network stack, until its first frame left",
    LOOKUP: "until the sender's ARP request was answered",
    AGAIN: "from its first frame to the frame that arrived: lost frames, sent again",
    QUEUE: "waits behind other frames for the link's rate",
    JITTER: "what the link's delay is longer than its mean",
    QUEUE_OR_JITTER: "waits for the link's rate, or the delay's jitter: captures cannot tell them apart",
    SENDING: "the frame's length at the link's rate",
    TRAVEL: "the link's delay",
    EARLIER: "arrived, but bytes before it on its connection were missing",
    PROGRAM: "in a node between two ways: a broker, a server, their sockets",
    RECEIVER: "from the frame's arrival until the receiver's program had the message",
    UNEXPLAINED: "no capture or plan divides it further",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message's time; `where` is the node or link, or the two places between which the time
    passed.
    """

    what: str
    where: str
    begin_ns: int
    length_ns: int
    behind: dict[str, int] = field(default_factory=dict)  # bytes that passed during the wait, by sender


# ns; largest difference between the end of one frame's sending and the begin of that of the next, which
# waited
TURN_NS = 1000
Behind = Callable[[Leg, Element, str, int, int], dict[str, int]]
Asked = Callable[[Leg, int, int], "Lookup | None"]


@dataclass(slots=True)
class Line:
    """The parts so far, without a gap, from the scheduled time to `now_ns`; no part ends after `end_ns`."""

    now_ns: int
    end_ns: int
    parts: list[Part] = field(default_factory=list)
    back_ns: int = 0  # the largest time (ns) by which a step was earlier than the one before it

    def until(self, t_ns: int, what: str, where: str, behind: dict[str, int] | None = None) -> None:
        """Appends a part that ends at a time; if that time has passed already, only records by how much."""
        self.back_ns = max(self.back_ns, self.now_ns - t_ns, t_ns - self.end_ns)
        t_ns = min(t_ns, self.end_ns)
        if t_ns > self.now_ns:
            self.parts.append(Part(what, where, self.now_ns, t_ns - self.now_ns, behind or {}))
            self.now_ns = t_ns


@dataclass(slots=True)
class Divider:
    """Divides a message's time along the legs of its path. `behind` may return the frames that passed during
    a wait, and `asked` the address lookup at a time.
    """

    line: Line
    settings: Settings
    behind: Behind
    asked: Asked
    _open: list[Element] = field(default_factory=list)  # links after the last stamp
    _bytes: int = 0  # length of the last frame in bytes

    def along(self, legs: Sequence[Leg], program: str) -> None:
        """Divides the time until the last stamp of the last leg. program: the name of the part for the time
        in the first leg's node.
        """
        for leg in legs:
            first = leg.stamps[0]
            head = links_between(leg, 0, first.position)
            if head or self._open:
                self._gap(self._open + head, first.t_ns, first.wire_bytes, f"{program} of {leg.source}")
            else:
                self._leave(leg, program)
            for before, after in zip(leg.stamps, leg.stamps[1:], strict=False):
                links = links_between(leg, before.position, after.position)
                self._gap(links, after.t_ns, after.wire_bytes, "", (leg, after.point))
            where = f"{leg.last.point}, connection {leg.source} to {leg.to}"
            self.line.until(leg.complete_ns, EARLIER, where)
            self._open = links_between(leg, leg.last.position, len(leg.way) - 1)
            self._bytes = leg.last.wire_bytes
            program = PROGRAM

    def arrive(self, t_ns: int, what: str, node: str) -> None:
        """Appends the part from the last stamp to the time at which a program of the node had the message."""
        if self._open:
            self._gap(self._open, t_ns, self._bytes, f"{what} {node}")
        else:
            self.line.until(t_ns, what, f"node {node}")
        self._open = []

    def _leave(self, leg: Leg, program: str) -> None:
        """Divides the time in a node until the arriving frame left it."""
        where = f"node {leg.source}"
        answer = self.asked(leg, self.line.now_ns, leg.first_ns)
        if answer is not None:
            self.line.until(answer.t_ns, LOOKUP, f"{where}, asked for {answer.sender}")
        self.line.until(leg.first_ns, program, where)
        sent = f", sent {leg.copies} times" if leg.copies > 1 else ""
        links = links_between(leg, 0, len(leg.way) - 1)
        cut = next((one for one in links if self.settings.down(one.name, leg.first_ns)), None)
        sent += f", first while {cut} was cut" if cut and sent else ""
        self.line.until(leg.stamps[0].t_ns, AGAIN, where + sent)

    @staticmethod
    def _wait(setting: Impairment) -> str:
        if not setting.rate_bps:
            return JITTER
        return QUEUE_OR_JITTER if setting.jitter_ns or setting.slot else QUEUE

    def _gap(
        self, links: list[Element], until_ns: int, wire_bytes: int, program: str,
        at: tuple[Leg, str] | None = None,
    ) -> None:  # fmt: skip
        """Divides the time until a stamp over the links before it. Time that their delay and rate do not
        explain is a wait, if only one of them can hold a frame back and no `program` lies between them.
        """
        begin_ns = self.line.now_ns
        set_ = [self.settings.at(link, begin_ns) for link in links]
        travel = [one.delay_ns for one in set_]
        # A queue below netem has a token bucket, whose tokens may let the frame pass at once.
        sending = [
            8 * 10**9 * wire_bytes // one.rate_bps if one.rate_bps and one.queue is None else 0
            for one in set_
        ]
        rest = until_ns - begin_ns - sum(travel) - sum(sending)
        holding = [n for n, one in enumerate(set_) if one.rate_bps or one.jitter_ns or one.slot or one.queue]
        alone = holding[0] if len(holding) == 1 and not program else None
        for n, link in enumerate(links):
            if n == alone and rest > 0:
                one = set_[n]
                what = self._wait(one)
                # netem's delay comes first: the frames ahead left the queue just before
                left_ns = until_ns - sending[n]
                if at and what == QUEUE_OR_JITTER:
                    near = self.behind(at[0], link, at[1], left_ns - TURN_NS, left_ns + TURN_NS)
                    what = what if near or one.slot else JITTER
                waited = at is not None and what != JITTER
                ahead = self.behind(at[0], link, at[1], left_ns - rest, left_ns) if at and waited else {}
                self.line.until(self.line.now_ns + rest, what, str(link), ahead)
            self.line.until(min(self.line.now_ns + sending[n], until_ns), SENDING, str(link))
            self.line.until(min(self.line.now_ns + travel[n], until_ns), TRAVEL, str(link))
        between = [program] if program else []
        between += [f"{_holder(set_[n])} of {links[n]}" for n in holding] or [str(link) for link in links]
        self.line.until(until_ns, UNEXPLAINED, " or ".join(between) or "between two captures")


def _holder(setting: Impairment) -> str:
    """Returns what can delay a frame on a link: its queue, its jitter, or one of the two."""
    queue = setting.rate_bps or setting.queue is not None
    varies = setting.jitter_ns or setting.slot is not None
    return " or ".join(name for name, there in ((QUEUE, queue), (JITTER, varies)) if there)


def links_between(leg: Leg, first: int, last: int) -> list[Element]:
    """Returns the links between two positions of a path, without the element at the first position."""
    return [one for one in leg.way[first + 1 : last + 1] if one.kind == "link"]
