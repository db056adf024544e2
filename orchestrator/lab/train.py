"""Measures a rate by a train of frames, from those frames that waited for the frames before them.

netem sends a frame when its delay is over and the frame before has been sent (net/sched/sch_netem.c). Once
more frames wait than the longest delay and jitter explain, they leave at the rate's exact spacing, whatever
the jitter. The remaining error comes from the machine's own lateness: the distance of arrivals from a
straight line, in relation to the train's length.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.judgement import Seen, shown
from orchestrator.lab.probes import FRAMES_LEAST, at_once, longest_delay_ns, train_size, transmission_ns

OFFER_FACTOR = 1.1  # a rate shows only if more than the rate was offered
LATE_SHARE = 0.95  # share of the arrivals whose distance from the line counts; the rest were late
PLAIN = 0.25  # largest distance of a gap from a multiple of the frame's time, as a share of that time


@dataclass(frozen=True, slots=True)
class Realised:
    """A measured rate. error: the most by which it may be wrong, as a share; frames, span_ns: number and time
    span of the frames used; late_ns: distance of arrivals from the straight line, without the latest 5 %.
    """

    rate_bps: float
    error: float
    frames: int
    span_ns: int
    late_ns: float


@dataclass(frozen=True, slots=True)
class Untold:
    """The reason why a train measures no rate, and the number of its usable frames."""

    reason: str
    frames: int


def measured(requested: Impairment, train: Seen | None) -> Realised | Untold:
    """Returns the rate that a train shows, or the reason why it shows none: too few frames arrived or waited,
    the offered rate was below 1.1 times the rate, or the queue is too short.
    """
    if train is None or len(train.arrivals_ns) < FRAMES_LEAST:
        count = 0 if train is None else len(train.arrivals_ns)
        return Untold(f"{count} frames are too few to judge; a rate shows from {FRAMES_LEAST}", count)
    waited = _waited(requested, train)
    if len(waited) < FRAMES_LEAST:
        return Untold(_why_none(requested, train), len(waited))
    size, found = train_size(requested), _line(requested, waited, train)
    rate = size * 8 * SECOND / found.spacing_ns
    offered = offered_bps(train, size)
    if offered < OFFER_FACTOR * queueing.lone_bps(requested):
        return Untold(too_slow(offered), len(waited))
    late, span = found.late_ns, waited[-1] - waited[0]
    # If the queue is hardly longer than the delay, late frames look like frames that waited.
    if requested.limit_packets * transmission_ns(size, requested) - longest_delay_ns(requested) <= 2 * late:
        return Untold(_why_none(requested, train), len(waited))
    return Realised(rate, 2 * late / (span / 2) + found.holes, len(waited), span, late)


def _pairs(train: Seen) -> list[tuple[int, int]]:
    return sorted(zip(train.arrivals_ns, train.delays_ns, strict=True))


def _waited(requested: Impairment, train: Seen) -> list[int]:
    """Returns the arrivals (ns) of the frames that waited for those before them: the end of the train from
    the last frame with a short delay on; with reordering, every frame with a long delay. Leaves out the
    frames that pass before the queue limits the rate.
    """
    most = longest_delay_ns(requested) + transmission_ns(train_size(requested), requested)
    pairs = _pairs(train)[at_once(requested) :]
    if requested.reorder:  # a frame that skips the queue takes no time of it
        return [at for at, delay in pairs if delay > most]
    first = next((n for n in range(len(pairs), 0, -1) if pairs[n - 1][1] <= most), 0)
    return [at for at, _ in pairs[first:]]


def _why_none(requested: Impairment, train: Seen) -> str:
    """Returns the reason why no frames waited long enough: too low an offered rate, or a queue that is too
    short.
    """
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
    """Returns the reason for a train that was sent too slowly to show the rate; `rate`: the offered rate
    (bit/s).
    """
    return (
        f"the machine offered only {shown('bit/s', rate)}, and a rate shows where more than it is offered; "
        "`--time virtual` offers more, in real time a faster machine or `--kernel host`"
    )


def offered_bps(train: Seen, size: int) -> float:
    """Returns the offered rate (bit/s): bits of all sent frames but one, over the sending time of those that
    arrived; infinite if that time is 0.
    """
    times = [a - d for a, d in _pairs(train)]
    span = max(times) - min(times)
    return float("inf") if span <= 0 else (train.sent - 1) * size * 8 * SECOND / span


@dataclass(frozen=True, slots=True)
class _Line:
    """The straight line through arrivals: the time between frames (ns) and the distance of arrivals from the
    line (ns).

    holes: the error, as a share, because it is unknown which frames of the train are missing.
    """

    spacing_ns: float
    late_ns: float
    holes: float


def _line(requested: Impairment, waited: Sequence[int], train: Seen) -> _Line:
    """Fits the straight line through arrivals.

    Frames with a flipped bit and second copies take time on the link, but their arrivals are not reported:
    each leaves a hole. If the holes can be recognised, each frame gets its place in the train; else the
    average number of holes in the whole train is assumed.
    """
    hidden = train.received + train.duplicates - len(train.arrivals_ns)
    if not hidden and not requested.corrupt:
        return _straight(waited, range(len(waited)), 0.0)
    most = train.sent + train.duplicates - len(train.arrivals_ns)  # a bit of the address may be flipped, too
    if (places := _places(waited, most)) is not None:
        return _straight(waited, places, 0.0)
    share = hidden / (hidden + len(train.arrivals_ns))
    holes = 2 * math.sqrt(share * (1 - share) / (len(waited) / 2))
    found = _straight(waited, range(len(waited)), holes)
    return replace(found, spacing_ns=found.spacing_ns * (1 - share))


def _places(arrivals: Sequence[int], most: int) -> list[int] | None:
    """Returns each frame's place in the train, if the times between arrivals are near whole multiples of
    their median.

    None if they are not, or if the places would have more holes than `most`.
    """
    gaps = [b - a for a, b in itertools.pairwise(arrivals)]
    one = statistics.median(gaps)  # most frames follow the one before them
    steps = [round(gap / one) for gap in gaps] if one > 0 else [0]
    if any(step < 1 or abs(gap - step * one) > PLAIN * one for gap, step in zip(gaps, steps, strict=False)):
        return None
    places = list(itertools.accumulate(steps, initial=0))
    return places if places[-1] - len(gaps) <= most else None


def _straight(arrivals: Sequence[int], places: Sequence[int], holes: float) -> _Line:
    spacing = _spacing(arrivals, places)
    return _Line(spacing, _late(arrivals, places, spacing), holes)


def _spacing(arrivals: Sequence[int], places: Sequence[int]) -> float:
    """Returns the time between frames (ns): the median over pairs of arrivals that lie half the
    train apart.
    """
    half = len(arrivals) // 2
    pairs = list(zip(arrivals, arrivals[half:], places, places[half:], strict=False))
    if all(to - at == half for _, _, at, to in pairs):
        return statistics.median(b - a for a, b, _, _ in pairs) / half or 1e-9
    return statistics.median((b - a) / (to - at) for a, b, at, to in pairs) or 1e-9


def _late(arrivals: Sequence[int], places: Sequence[int], spacing: float) -> float:
    """Returns the distance (ns) from the straight line that 95 % of the arrivals do not exceed."""
    away = [at - spacing * n for n, at in zip(places, arrivals, strict=True)]
    middle = statistics.median(away)
    distances = sorted(abs(d - middle) for d in away)
    return distances[min(len(distances) - 1, int(LATE_SHARE * len(distances)))]
