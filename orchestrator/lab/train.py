"""Measures a rate by a train of frames, from those that waited for the frames before them.

netem sends a frame when its delay is over and the one before has been sent (net/sched/sch_netem.c): once
more is waiting than the longest delay and jitter explain, frames leave at the rate's spacing exactly,
whatever the jitter. What a longer train cannot settle is then only the machine's own lateness, which the
distance of arrivals from a straight line shows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.judgement import Seen, shown
from orchestrator.lab.probes import FRAMES_LEAST, at_once, longest_delay_ns, train_size, transmission_ns

OFFER_FACTOR = 1.1  # a rate shows only if more than the rate was offered
LATE_SHARE = 0.95  # of the arrivals lie so near the line; the others came late, and the next ones caught up


@dataclass(frozen=True, slots=True)
class Realised:
    """error: most that the rate may be wrong by, as a share; late_ns: how far arrivals lie from the line."""

    rate_bps: float
    error: float
    frames: int
    span_ns: int
    late_ns: float


@dataclass(frozen=True, slots=True)
class Untold:
    """The reason why a train measures no rate."""

    reason: str
    frames: int


def measured(requested: Impairment, train: Seen | None) -> Realised | Untold:
    """The rate that a train shows."""
    if train is None or len(train.arrivals_ns) < FRAMES_LEAST:
        count = 0 if train is None else len(train.arrivals_ns)
        return Untold(f"{count} frames are too few to judge; a rate shows from {FRAMES_LEAST}", count)
    waited = _waited(requested, train)
    if len(waited) < FRAMES_LEAST:
        return Untold(_why_none(requested, train), len(waited))
    size, spacing = train_size(requested), _spacing(waited)
    # Frames with a flipped bit and second copies took time too, but their arrivals are not reported.
    counted = (train.received + train.duplicates) / len(train.arrivals_ns)
    rate = size * 8 * SECOND / spacing * counted
    offered = offered_bps(train, size)
    if offered < OFFER_FACTOR * queueing.lone_bps(requested):
        return Untold(too_slow(offered), len(waited))
    late, span = _late(waited, spacing), waited[-1] - waited[0]
    # Where the queue is hardly longer than the delay, frames that were late look like frames that waited.
    if requested.limit_packets * transmission_ns(size, requested) - longest_delay_ns(requested) <= 2 * late:
        return Untold(_why_none(requested, train), len(waited))
    hidden = abs(1 - 1 / counted)
    holes = 2 * math.sqrt(hidden * (1 - hidden) / (len(waited) / 2)) if hidden else 0.0
    return Realised(rate, 2 * late / (span / 2) + holes, len(waited), span, late)


def _pairs(train: Seen) -> list[tuple[int, int]]:
    return sorted(zip(train.arrivals_ns, train.delays_ns, strict=True))


def _waited(requested: Impairment, train: Seen) -> list[int]:
    """Arrivals of the frames at the end of the train that waited for those before them."""
    most = longest_delay_ns(requested) + transmission_ns(train_size(requested), requested)
    pairs = _pairs(train)[at_once(requested) :]
    if requested.reorder:  # a frame that skips the queue takes no time of it
        return [at for at, delay in pairs if delay > most]
    first = next((n for n in range(len(pairs), 0, -1) if pairs[n - 1][1] <= most), 0)
    return [at for at, _ in pairs[first:]]


def _why_none(requested: Impairment, train: Seen) -> str:
    size = train_size(requested)
    offered = offered_bps(train, size)
    if offered < OFFER_FACTOR * queueing.lone_bps(requested):
        return too_slow(offered)
    held = shown("ns", requested.limit_packets * transmission_ns(size, requested))
    return (
        f"delay and jitter hide the rate: no {FRAMES_LEAST} frames waited longer than they take; the queue "
        f"holds {held}, "
        "a longer one (`limit`) shows it"
    )


def too_slow(rate: float) -> str:
    """The reason if the train did not offer more than the rate."""
    return (
        f"the machine offered only {shown('bit/s', rate)}, and a rate shows where more than it is offered; "
        "`--time virtual` offers more, in real time a faster machine or `--kernel host`"
    )


def offered_bps(train: Seen, size: int) -> float:
    """The offered rate: all frames that were sent, over the sending time of those that arrived."""
    times = [a - d for a, d in _pairs(train)]
    span = max(times) - min(times)
    return float("inf") if span <= 0 else (train.sent - 1) * size * 8 * SECOND / span


def _spacing(arrivals: Sequence[int]) -> float:
    """Time between arrivals: the median over pairs that lie half the train apart."""
    half = len(arrivals) // 2
    return statistics.median(b - a for a, b in zip(arrivals, arrivals[half:], strict=False)) / half or 1e-9


def _late(arrivals: Sequence[int], spacing: float) -> float:
    away = [at - spacing * n for n, at in enumerate(arrivals)]
    middle = statistics.median(away)
    distances = sorted(abs(d - middle) for d in away)
    return distances[min(len(distances) - 1, int(LATE_SHARE * len(distances)))]
