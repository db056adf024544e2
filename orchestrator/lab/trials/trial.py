"""Defines one trial and its outcome, with the verdict: passed, or the path lost or delayed frames, or the
tester was too slow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.lab.clock import MILLISECOND, SECOND

TrialResult = Literal["passed", "lost", "queued", "tester"]

# A path carries a load if frames leave it as fast as they enter. Trials of RFC 2544 last 60 s, so that queues
# on the way cannot hide an overload; with this rule trials of a second or two find the same rate.
HELD_BACK = 0.01
# lateness at which a frame counts as delayed by a queue; a busy machine's receiver causes less
HELD_BACK_LEAST_NS = 2 * MILLISECOND
OFFERED = 0.98  # share of the requested rate; below it, the tester and not the path limits the trial


@dataclass(frozen=True, slots=True)
class Trial:
    """Frames to offer: `count` of `size` bytes (with FCS), at `rate_fps`, or back to back if that is 0."""

    test: str
    size: int
    rate_fps: float
    count: int
    repetition: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of a trial. Times are Unix ns on the clock of the node that took them; latencies are in ns, None
    if unknown.
    """

    trial: Trial
    sent: int
    refused: int  # offered frames that the queue of the sender's own interface dropped
    late_ns: int
    tx_first_ns: int
    tx_last_ns: int
    received: int
    duplicates: int
    reordered: int
    corrupted: int
    foreign: int
    early: int
    ring_dropped: int  # frames that the receiver itself dropped for lack of room
    rx_first_ns: int
    rx_last_ns: int
    tagged_ns: int | None  # latency of the frame in the middle
    latency_min_ns: int | None
    latency_mean_ns: float | None
    latency_max_ns: int | None
    buckets: tuple[tuple[int, int, int], ...] = field(default=())  # latency from, to (excluded), frames

    @property
    def lost(self) -> int:
        """Frames that the path lost; frames that the receiver itself dropped do not count."""
        return max(0, self.sent - self.received - self.ring_dropped)

    @property
    def loss(self) -> float:
        """The share of sent frames that the path lost; 0 if none was sent."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def achieved_fps(self) -> float:
        """The rate (frames/s) at which frames were really offered; 0 for fewer than two frames or no time
        between them.
        """
        return _rate(self.sent, self.tx_first_ns, self.tx_last_ns)

    @property
    def delivered_fps(self) -> float:
        """The rate (frames/s) at which frames arrived; 0 for fewer than two frames or no time
        between them.
        """
        return _rate(self.received, self.rx_first_ns, self.rx_last_ns)

    def verdict(self, tolerate: float) -> TrialResult:
        """Returns `lost` if the path lost more than the share `tolerate`, `tester` if the receiver dropped
        frames or the sender sent none or less than 98 % of the rate, `queued` if a queue grew, else `passed`.
        """
        if self.lost > math.floor(tolerate * self.sent):
            return "lost"
        if self.ring_dropped or not self.sent:
            return "tester"
        if self.trial.rate_fps and self.achieved_fps < OFFERED * self.trial.rate_fps:
            return "tester"
        return "queued" if self.held_back else "passed"

    @property
    def held_back(self) -> bool:
        """Whether frames took longer to arrive than to be sent, by more than 1 % and 2 ms, so that a queue on
        the path grew; False for a burst or fewer than two received frames.
        """
        if self.received < 2 or not self.trial.rate_fps:
            return False
        went_in, came_out = self.tx_last_ns - self.tx_first_ns, self.rx_last_ns - self.rx_first_ns
        return came_out - went_in > max(HELD_BACK * went_in, HELD_BACK_LEAST_NS)


def _rate(frames: int, first_ns: int, last_ns: int) -> float:
    return (frames - 1) * SECOND / (last_ns - first_ns) if frames > 1 and last_ns > first_ns else 0.0
