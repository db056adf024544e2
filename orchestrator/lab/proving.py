"""Plans the length of a proof: chooses further trains for the quantities that the first ones leave undecided,
within the allowed time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from contract.plan import Impairment, Link
from contract.plan.tolerance import ProofSettings
from contract.proof import Proven
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.intervals import ENOUGH
from orchestrator.lab.judgement import RATE, decides
from orchestrator.lab.operations import Probe
from orchestrator.lab.probes import (
    SMALLEST,
    directions,
    in_turns,
    longest_delay_ns,
)

LOOKS = 4  # largest number of judgements in one proof: after the first trains, and after up to three more
AT_MOST_NS, AT_MOST_VIRTUAL_NS = 60 * SECOND, 1200 * SECOND
# Probe frames of all directions together; half of the number that the slowest lab kernel forwards.
FRAMES_PER_S = 4000
# In virtual time, frames that cannot queue are sent together, because a system call costs more time than a
# frame.
TOGETHER, DENSE_NS = 64, MILLISECOND // 5
CALLS_NS = 10_000  # virtual time of two system calls
CERTAIN = 100  # number of frames for an impairment without a random part
JITTERED = ("delay", "jitter")  # quantities that are judged with a wider tolerance if time is short
SPREAD = (*JITTERED, "distribution")  # quantities whose first frames show how many more are needed
# quantities that depend only on the number of arriving frames, not on their size and delay
COUNTED = ("loss", "duplicate")
Way = tuple[str, str]


def most_ns(requested: ProofSettings, *, virtual: bool) -> int:
    """Returns the longest total duration (ns) of a direction's spaced frames: the topology's, else 1200 s in
    virtual and 60 s in real time.
    """
    if requested.at_most_ns is not None:
        return requested.at_most_ns
    return AT_MOST_VIRTUAL_NS if virtual else AT_MOST_NS


def further(
    first: Sequence[Probe], judged: Sequence[Proven], left_ns: int, links: Sequence[Link], *, dense: bool
) -> list[Probe]:
    """Returns probes with the frames that undecided quantities need, if all frames of a quantity fit into the
    remaining time; quantities that need the shortest time come first. Empty if none fits. Rates have trains
    of their own (train.py).

    In real time the frame rate of all directions together is limited, too. dense: in virtual time, without
    that limit and with frames closer together.
    """
    requested = {(link, name): d.impairment for link, name, d in directions(links)}
    probe_of = {(p["link"], p["direction"]): p for p in first}
    if dense:
        probe_of = {way: _denser(p, requested[way]) for way, p in probe_of.items()}
    frames: dict[Way, int] = {}
    timed: dict[Way, int] = {}  # the ways whose delays are requested, each with a time in ns
    spaced = [line for line in judged if line.quantity != RATE]
    for line in sorted(spaced, key=lambda j: more(j) * _interval(probe_of, j)):
        way = line.link, line.direction
        missing = more(line) - frames.get(way, 0)
        if missing <= 0 or way not in probe_of:
            continue
        most = left_ns // _interval(probe_of, line) - frames.get(way, 0)
        if not dense:
            most = min(most, left_ns * FRAMES_PER_S // SECOND - sum(frames.values()))
        if missing <= most:
            frames[way] = frames.get(way, 0) + missing
            if line.quantity not in COUNTED or requested[way].corrupt:
                timed[way] = frames[way]
    return [
        part
        for probe in _longer(probe_of, frames, dense=dense)
        for part in _parted(probe, timed.get((probe["link"], probe["direction"]), 0))
    ]


def brief(first: Sequence[Probe], links: Sequence[Link]) -> list[Probe]:
    """Returns the first probes for virtual time. Frames are closer together, and in batches if they cannot
    queue. At most 100 frames pass an impairment without a random part, slots or a queue.
    """
    requested = {(link, name): d.impairment for link, name, d in directions(links)}
    found = []
    for probe in first:
        impairment = requested[probe["link"], probe["direction"]]
        count = probe["count"] if _chance(impairment) else min(probe["count"], CERTAIN)
        found.append(_denser({**probe, "count": count, "start_ns": 0}, impairment))
    return in_turns(found, links)


def at_once(trains: Sequence[Probe]) -> list[Probe]:
    """Returns trains whose frames are sent in batches of up to 64, for virtual time. In virtual time a system
    call takes time and a frame takes none, so with one frame per call at most 2.4 Gbit/s could be sent.
    """
    return [{**p, "batch": max(1, min(TOGETHER, CALLS_NS // max(1, p["interval_ns"])))} for p in trains]


def _chance(requested: Impairment) -> bool:
    """Returns whether the impairment has a random part, or slots or a queue."""
    drawn = (
        requested.jitter_ns,
        requested.gemodel,
        requested.loss,
        requested.duplicate,
        requested.corrupt,
        requested.reorder,
    )
    return any(drawn) or requested.slot is not None or requested.queue is not None


def _denser(probe: Probe, requested: Impairment) -> Probe:
    """Returns the probe with frames closer together and in batches of 64. Returns the probe unchanged if the
    direction has a rate, order, slots or a queue (frames would then wait for each other), if its limit is too
    small, or if the frames are already closer.
    """
    if (
        requested.rate_bps
        or requested.netem_stays
        or requested.slot is not None
        or requested.queue is not None
    ):
        return probe
    # The number of frames that may wait in netem at a time; a link without impairment has none.
    room = requested.limit_packets // 2 or 2 * TOGETHER
    interval = max(DENSE_NS, longest_delay_ns(requested) // max(1, room - TOGETHER))
    if room <= TOGETHER or interval >= probe["interval_ns"]:
        return probe
    return {**probe, "interval_ns": interval, "batch": TOGETHER}


def _parted(probe: Probe, timed: int) -> Iterator[Probe]:
    """Splits a probe into `timed` frames whose delays are requested, then short frames that are
    only counted.
    """
    if timed:
        yield {**probe, "count": timed}
    if counted := probe["count"] - timed:
        begin = probe["start_ns"] + timed * probe["interval_ns"]
        yield {**probe, "count": counted, "start_ns": begin, "size": SMALLEST, "counts_only": True}


def _longer(probe_of: Mapping[Way, Probe], frames: Mapping[Way, int], *, dense: bool) -> Iterator[Probe]:
    """Yields the probes with new numbers of frames; all begin at once. If together they exceed 4,000
    frames/s, they get longer intervals, unless `dense`.
    """
    span = max((count * probe_of[way]["interval_ns"] for way, count in frames.items()), default=0)
    total = sum(frames.values())
    slower = max(1.0, total * SECOND / FRAMES_PER_S / span) if span and not dense else 1.0
    for way, count in frames.items():
        probe = probe_of[way]
        interval = math.ceil(probe["interval_ns"] * slower)
        yield {**probe, "count": count, "interval_ns": interval, "start_ns": 0}


def told(
    lines: Sequence[Proven], first: Sequence[Probe], spent_ns: int, most: int, *, dense: bool
) -> list[Proven]:
    """Adds a remedy to the reason of undecided judgements: a longer proof, with its duration, or another
    proof if the allowed time (`most`, ns) was enough. Other judgements, judgements without a known number of
    frames, and rates stay unchanged.

    spent_ns: the time that the proof took. In real time the frame rate of all directions together is limited,
    so the quantities that need the shortest time come first.
    """
    probe_of = {(p["link"], p["direction"]): p for p in first}
    frames: dict[Way, int] = {}
    whole_ns: dict[int, int] = {}  # duration in ns by id() of the line
    for line in sorted(lines, key=lambda j: _missing(j) * _interval(probe_of, j)):
        way = line.link, line.direction
        if line.quantity == RATE or way not in probe_of or not (missing := _missing(line)):
            continue
        frames[way] = max(frames.get(way, 0), missing)
        together_ns = 0 if dense else sum(frames.values()) * SECOND // FRAMES_PER_S
        whole_ns[id(line)] = spent_ns + max(missing * _interval(probe_of, line), together_ns)
    return [
        replace(line, reason=f"{line.reason}; {decides(whole_ns[id(line)], most)}")
        if id(line) in whole_ns
        else line
        for line in lines
    ]


def in_time(
    fine: Sequence[Proven],
    rough: Sequence[Proven],
    first: Sequence[Probe],
    left_ns: int,
    *,
    dense: bool,
) -> list[Proven]:
    """Returns for each quantity the fine judgement if the frames that it still needs (0 if decided) fit into
    the remaining time, else the rough one.
    """
    probe_of = {(p["link"], p["direction"]): p for p in first}

    def fits(line: Proven) -> bool:
        most = left_ns // _interval(probe_of, line)
        return more(line) <= (most if dense else min(most, left_ns * FRAMES_PER_S // SECOND))

    return [f if fits(f) else r for f, r in zip(fine, rough, strict=True)]


def more(line: Proven) -> int:
    """Returns the frames that one direction gets next; 0 for a decided quantity, or if no number of frames
    would decide it. A quantity with too few frames for a spread gets that many first; they then show how many
    it needs.
    """
    if line.quantity in SPREAD and line.measured is None and line.needs is not None:
        line = replace(line, needs=min(line.needs, ENOUGH))
    return _missing(line)


def _missing(line: Proven) -> int:
    """Returns the frames that one direction still needs; 0 in the same cases as `more`."""
    if line.verdict != "cannot tell" or line.needs is None:
        return 0
    return max(0, math.ceil((line.needs - line.n) / line.directions))


def _interval(probe_of: Mapping[Way, Probe], line: Proven) -> int:
    """Returns the interval (ns) of the probe of the judgement's direction, at least 1; 1 if there is no
    probe.
    """
    probe = probe_of.get((line.link, line.direction))
    return max(1, probe["interval_ns"]) if probe else 1
