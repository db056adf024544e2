"""Measures a path by probes, and chooses how messages are sent on it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

LOST_AFTER_NS = 500_000_000  # a probe that has not returned is lost
FEWEST = 8  # probes that a choice needs; as many last ones show the queue


@dataclass(frozen=True)
class Policy:
    """The limits of a choice, as in the topology file."""

    probe_every_ns: int
    window_ns: int
    loss: float
    queue_ns: int
    stay_ns: int


@dataclass(frozen=True)
class Measured:
    """The result of the probes of a window: the share that did not return, and by how much longer the last
    ones took than the fastest.
    """

    loss: float
    queue_ns: float


@dataclass
class Probes:
    """The probes of a window, by the time when they were sent, with the time that each took."""

    window_ns: int
    sent: deque[tuple[int, int]] = field(default_factory=deque)  # number, time
    took_ns: dict[int, int] = field(default_factory=dict)

    def send(self, seq: int, now_ns: int) -> None:
        """Enters a probe, and drops those that are older than the window."""
        self.sent.append((seq, now_ns))
        while self.sent[0][1] < now_ns - self.window_ns:
            self.took_ns.pop(self.sent.popleft()[0], None)

    def back(self, seq: int, now_ns: int) -> None:
        """Enters the return of a probe; ignores one that has left the window or returns again."""
        at = next((at for number, at in self.sent if number == seq), None)
        if at is not None:
            self.took_ns.setdefault(seq, now_ns - at)

    def measured(self, now_ns: int) -> Measured | None:
        """Returns what the window says; None if fewer than eight probes are decided: back, or lost."""
        decided = [seq for seq, at in self.sent if seq in self.took_ns or now_ns - at > LOST_AFTER_NS]
        took = [self.took_ns[seq] for seq in decided if seq in self.took_ns]
        if len(decided) < FEWEST:
            return None
        last = took[-FEWEST:]
        queue_ns = sum(last) / len(last) - min(took) if took else 0.0
        return Measured(1 - len(took) / len(decided), queue_ns)


def choice(found: Measured | None, policy: Policy, now: str) -> str:
    """Returns how to send: `now` as long as nothing is known; one datagram on a path whose queue grows,
    which more would only lengthen; two on a path that loses; else the stream, which loses nothing.
    """
    if found is None:
        return now
    if found.queue_ns > policy.queue_ns:
        return "once"
    return "twice" if found.loss > policy.loss else "stream"
