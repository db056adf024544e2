"""Measures a rate by a train of frames, from those frames that waited for the frames before them.

netem sends a frame when its delay is over and the frame before has been sent (net/sched/sch_netem.c). Once
more frames wait than the longest delay and jitter explain, they leave at the rate's exact spacing, whatever
the jitter. The remaining error comes from the machine's own lateness: it is the distance of arrivals from a
straight line, divided by the train's length. If a train leaves the rate undecided, a longer train follows.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from contract.plan import Direction, Impairment, Link
from contract.proof import Proven
from orchestrator import queueing
from orchestrator.lab import expected
from orchestrator.lab.clock import SECOND
from orchestrator.lab.intervals import AGAIN, NEARLY, ROOM
from orchestrator.lab.judgement import RATE, Seen, decides, shown
from orchestrator.lab.operations import Probe
from orchestrator.lab.probes import (
    FRAMES_LEAST,
    JITTER_TAIL,
    TRAIN_FRAMES_LEAST,
    TRAIN_FRAMES_SHORT,
    at_once,
    directions,
    in_turns,
    length_ns,
    longest_delay_ns,
    probe_of,
    staggered,
    train_size,
    transmission_ns,
)

OFFER_FACTOR = 1.1  # offered rate as a multiple of the link's: a rate limit shows only if more is offered
LATE_SHARE = 0.95  # share of arrivals whose distance from the line counts; later ones are left out
# largest distance of a gap from a multiple of a frame's transmission time, as a share of that time
PLAIN = 0.25


@dataclass(frozen=True, slots=True)
class Realised:
    """A measured rate. error: the largest possible error of the rate, as a share of it; frames, span_ns:
    number and time span of the frames used; late_ns: distance of arrivals from the straight line, without the
    latest 5 %. holes: the part of the error that comes from missing frames whose places are unknown.
    """

    rate_bps: float
    error: float
    frames: int
    span_ns: int
    late_ns: float
    holes: float = 0.0


@dataclass(frozen=True, slots=True)
class Untold:
    """The reason why a train measures no rate, the number of its usable frames, and whether a longer train
    may show the rate.
    """

    reason: str
    frames: int
    more: bool = False


def measured(requested: Impairment, train: Seen | None) -> Realised | Untold:
    """Returns the rate that a train shows, or the reason why it shows none: too few frames arrived or waited,
    the offered rate was below 1.1 times the rate, or the queue is too short.
    """
    if train is None or len(train.arrivals_ns) < FRAMES_LEAST:
        count = 0 if train is None else len(train.arrivals_ns)
        few = f"{count} frames are too few to judge; a rate shows from {FRAMES_LEAST}"
        return Untold(few, count, more=True)
    waited = _waited(requested, train)
    if len(waited) < FRAMES_LEAST:
        return _why_none(requested, train, len(waited))
    size, found = train_size(requested), _line(requested, waited, train)
    rate = size * 8 * SECOND / found.spacing_ns
    offered = offered_bps(train, size)
    if offered < OFFER_FACTOR * queueing.lone_bps(requested):
        return Untold(too_slow(offered), len(waited))
    late, span = found.late_ns, waited[-1] - waited[0]
    # If the queue is hardly longer than the delay, late frames cannot be distinguished from frames that
    # waited.
    if _held_ns(requested) - longest_delay_ns(requested) <= 2 * late:
        return Untold(_hidden(requested), len(waited))
    error = 2 * late / (span / 2) + found.holes
    return Realised(rate, error, len(waited), span, late, found.holes)


def paced(requested: Impairment, arrivals: Sequence[int], train: Seen) -> tuple[float, float]:
    """Returns the rate (bit/s) of frames that all waited for one another, in order of arrival, and the rate's
    largest possible error (bit/s). The error is one frame, or more if the arrival of some frames is not
    reported.
    """
    bits, steps, span = train_size(requested) * 8 * SECOND, len(arrivals) - 1, arrivals[-1] - arrivals[0]
    if not _unseen(train) and not requested.corrupt:
        rate = steps * bits / span
        # the error is one frame, because the two ends of the examined part may cut a frame
        return rate, rate / steps
    found = _line(requested, arrivals, train)
    rate = bits / found.spacing_ns
    return rate, rate * (2 * found.late_ns / (span / 2) + found.holes + found.spacing_ns / span)


def _unseen(train: Seen) -> int:
    """Returns the number of frames that took time on the link although their arrival is not reported."""
    return train.received + train.duplicates - len(train.arrivals_ns)


def _pairs(train: Seen) -> list[tuple[int, int]]:
    return sorted(zip(train.arrivals_ns, train.delays_ns, strict=True))


def _waited(requested: Impairment, train: Seen) -> list[int]:
    """Returns the arrivals (ns) of the frames that waited for those before them: the end of the train from
    the last frame with a short delay on; with reordering, every frame with a long delay. Leaves out the
    frames that pass before the queue limits the rate.
    """
    most = longest_delay_ns(requested) + transmission_ns(train_size(requested), requested)
    pairs = _pairs(train)[at_once(requested) :]
    if requested.reorder:  # a frame that skips the queue takes no time of the link
        return [at for at, delay in pairs if delay > most]
    first = next((n for n in range(len(pairs), 0, -1) if pairs[n - 1][1] <= most), 0)
    return [at for at, _ in pairs[first:]]


def _why_none(requested: Impairment, train: Seen, waited: int) -> Untold:
    """Returns the reason why only `waited` frames waited long enough: the offered rate is too low, losses
    leave too little of it, the queue is too short, or the train is too short.
    """
    offered, least = offered_bps(train, train_size(requested)), OFFER_FACTOR * queueing.lone_bps(requested)
    if offered < least:
        return Untold(too_slow(offered), waited)
    if offered * expected.passing(requested) < least:
        return Untold(too_lossy(offered * expected.passing(requested)), waited, more=True)
    if _held_ns(requested) <= longest_delay_ns(requested):
        return Untold(_hidden(requested), waited)
    few = f"only {waited} frames waited longer than delay and jitter take; a rate shows from {FRAMES_LEAST}"
    return Untold(few, waited, more=True)


def _held_ns(requested: Impairment) -> int:
    """Returns the time (ns) in which the link sends all frames that the queue holds."""
    return requested.limit_packets * transmission_ns(train_size(requested), requested)


def _hidden(requested: Impairment) -> str:
    """Returns the reason for a queue that is too short."""
    return (
        f"delay and jitter hide the rate: no {FRAMES_LEAST} frames waited longer than they take; the queue "
        f"holds {shown('ns', _held_ns(requested))}, a longer one (`limit`) shows it"
    )


def too_lossy(passed: float) -> str:
    """Returns the reason for a train of which the requested loss left too few frames; `passed`: the rate
    (bit/s) that passed the loss.
    """
    left = f"the requested loss left {shown('bit/s', passed)} of the train"
    return f"{left}, and a rate shows where more than it is offered"


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
    each leaves a hole. If the holes can be recognised, each frame gets its place in the train; otherwise the
    holes are assumed to be spread evenly over the train.
    """
    hidden = _unseen(train)
    if not hidden and not requested.corrupt:
        return _straight(waited, range(len(waited)), 0.0)
    # A flipped bit may be in the address, so the frame is not reported; a damaged copy of a frame that
    # arrived also takes time on the link.
    copies = train.duplicates + (train.corrupted if requested.duplicate else 0)
    most = train.sent + copies - len(train.arrivals_ns)
    if (places := _places(waited, most)) is not None:
        return _straight(waited, places, 0.0)
    share = hidden / (hidden + len(train.arrivals_ns))
    holes = 2 * math.sqrt(share * (1 - share) / (len(waited) / 2))
    found = _straight(waited, range(len(waited)), holes)
    return replace(found, spacing_ns=found.spacing_ns * (1 - share))


def _places(arrivals: Sequence[int], most: int) -> list[int] | None:
    """Returns each frame's place in the train, if the times between arrivals are near whole multiples of one
    time: their median or, if most frames are missing, the shortest.

    None if they are not, or if the places would have more holes than `most`.
    """
    gaps = [b - a for a, b in itertools.pairwise(arrivals)]
    return _multiples(gaps, statistics.median(gaps), most) or _multiples(gaps, min(gaps), most)


def _multiples(gaps: Sequence[int], one: float, most: int) -> list[int] | None:
    """Returns the places of frames whose distances are whole multiples of `one` (ns); None in the same cases
    as `_places`.
    """
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


def needed_frames(
    direction: Direction, seen: Seen | None, told: Realised | Untold, tolerance: float, away: float
) -> int | None:
    """Returns the number of usable frames of a train that would decide a rate; None if no train would.

    tolerance, away: of the rate, and the distance of the measured rate from the expected one, as shares.
    """
    if not tolerance:
        return None
    if isinstance(told, Untold):
        longer = lengthened("", "", direction, TRAIN_FRAMES_LEAST)
        sent = seen.sent if seen is not None else 0
        again = told.more and expected.passing(direction.impairment) >= expected.LEAST_PASSING
        return TRAIN_FRAMES_LEAST if again and sent < longer["count"] else None
    times = told.error / (ROOM * tolerance)
    if times <= AGAIN:
        times = min(4.0, max(AGAIN, told.error / (NEARLY * max(abs(tolerance - away), told.error / 4))))
    # An estimated number of missing frames is a statistical error; lateness is not.
    frames = math.ceil(told.frames * (times**2 if told.holes else times))
    return frames if frames <= TRAIN_FRAMES_SHORT else None


def lengthened(link: str, name: str, direction: Direction, needs: int) -> Probe:
    """Returns a train with `needs` usable frames. The frames that pass the loss are sent at 1.5 times the
    rate, so that drops of the queue do not shorten the train.
    """
    requested = direction.impairment
    size = train_size(requested)
    spacing = max(1, transmission_ns(size, requested))
    head = 3 * (at_once(requested) + 2 * requested.jitter_ns * JITTER_TAIL // spacing + 1)
    carried = head + math.ceil(needs / max(1e-3, expected.shown(requested)))
    interval = max(1, round(spacing * expected.passing(requested) * 2 / 3))
    count = math.ceil(carried * spacing / interval)
    # At the end of the train, the waiting frames are a third of the frames that passed.
    sent = probe_of(link, name, direction, max(2, carried // 2), size, interval)
    return {**sent, "count": count}


def further(links: Sequence[Link], judged: Sequence[Proven], left_ns: int) -> list[Probe]:
    """Returns the longer trains of undecided rates that end within the remaining time."""
    return [probe for probe in trains(links, judged) if length_ns([probe]) <= left_ns]


def trains(links: Sequence[Link], judged: Sequence[Proven]) -> list[Probe]:
    """Returns the longer trains of all undecided rates. The fast ones start one after another, and the
    directions of a half-duplex link take turns.
    """
    return in_turns(staggered(list(_of(links, judged))), links)


def _of(links: Sequence[Link], judged: Sequence[Proven]) -> Iterator[Probe]:
    needs: Mapping[tuple[str, str], int] = {
        (line.link, line.direction): line.needs
        for line in judged
        if line.quantity == RATE and line.verdict == "cannot tell" and line.needs is not None
    }
    for link, name, direction in directions(links):
        if (link, name) in needs:
            yield lengthened(link, name, direction, needs[link, name])


def told(line: Proven, whole_ns: int, most_ns: int) -> Proven:
    """Adds to the reason of an undecided rate how it can be decided; returns other judgements unchanged.

    whole_ns: the time that the proof takes with the longer trains; most_ns: the time that it may take.
    """
    if line.quantity != RATE or line.verdict != "cannot tell" or line.needs is None:
        return line
    return replace(line, reason=f"{line.reason}; {decides(whole_ns, most_ns)}")
