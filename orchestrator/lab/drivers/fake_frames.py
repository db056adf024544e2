"""Answers frame-loss trials for the fake driver: computes the counts of an invented path with the impairments
of the plan's links.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from capture.ethernet import shaped_fps
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import (
    CollectFrames,
    FramesReceived,
    FramesSent,
    Latency,
    ListenForFrames,
    SendFrames,
)

TRANSIT_NS = 10_000
JITTER_NS = 2_000


class Carried(TypedDict):
    tx: FramesSent
    rx: FramesReceived


@dataclass(frozen=True, slots=True)
class FakePath:
    """The invented path of a trial's frames.

    rate_bps: bit/s, 0: no limit. tester_fps: the highest rate of the generator in frames/s.
    """

    rate_bps: int = 0
    queue: int = 1000  # largest number of frames in the queue
    loss: float = 0.0
    delay_ns: int = 0
    tester_fps: float = 1_000_000.0

    def carry(self, size: int, rate_fps: float, count: int, longest_ns: int, start_ns: int) -> Carried:
        """Returns the sender's and receiver's counts of a trial of `count` frames of `size` bytes; sends
        none.
        """
        rate = min(rate_fps or self.tester_fps, self.tester_fps)
        sent = min(count, max(1, math.floor(longest_ns * rate / SECOND) + 1))
        capacity = shaped_fps(size, self.rate_bps) if self.rate_bps else math.inf
        took_ns = round((sent - 1) * SECOND / rate)
        waiting = max(0.0, sent * (1 - capacity / rate))  # frames in the queue when the last frame came in
        received = sent - max(0, math.ceil(waiting - self.queue))
        received -= math.floor(received * self.loss)
        held_ns = 0 if math.isinf(capacity) else round(min(waiting, self.queue) * SECOND / capacity)
        first_ns = TRANSIT_NS + self.delay_ns
        last_ns = first_ns + held_ns
        middle = (first_ns + last_ns) // 2
        tx: FramesSent = {
            "first_ns": start_ns, "last_ns": start_ns + took_ns, "sent": sent, "refused": 0, "late_ns": 0,
            "waits": 0,
        }  # fmt: skip
        rx: FramesReceived = {
            "first_ns": start_ns + first_ns, "last_ns": start_ns + took_ns + last_ns, "received": received,
            "duplicates": 0, "reordered": 0, "corrupted": 0, "foreign": 0, "early": 0, "ring_dropped": 0,
            "tagged_ns": middle if received else None, "latency": _latency(received, first_ns, last_ns),
        }  # fmt: skip
        return {"tx": tx, "rx": rx}


def _latency(received: int, first_ns: int, last_ns: int) -> Latency:
    middle = (first_ns + last_ns) // 2
    buckets = [(middle, middle + JITTER_NS, received)] if received else []
    low, high = (first_ns, last_ns + JITTER_NS) if received else (None, None)
    return {"min_ns": low, "max_ns": high, "sum_ns": float(middle * received), "buckets": buckets}


class FakeTrials:
    """Answers the operations `listen`, `send` and `collect` of frames as two nodes' agents would."""

    def __init__(self, path: FakePath) -> None:
        self._path = path
        self._armed = False
        self._got: FramesReceived | None = None

    def perform(self, request: ListenForFrames | SendFrames | CollectFrames, now_ns: int) -> Message:
        if isinstance(request, ListenForFrames):
            self._armed, self._got = True, None
            return request.accept({"armed": True, "mac": "02:00:00:00:00:02"})
        if not self._armed:
            raise LabError(f"frames: {request.action}: nothing listens; ask for `listen` first")
        if isinstance(request, SendFrames):
            carried = self._path.carry(
                request.size, request.rate_fps, request.count, request.longest_ns, now_ns
            )
            self._got = carried["rx"]
            return request.accept(carried["tx"])
        if self._got is None:
            raise LabError("frames: collect: nothing was sent; ask for `send` first")
        self._armed = False
        return request.accept(self._got)
