"""Proves the rate of half-duplex links: simultaneous trains in both directions must share the rate of one
direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from contract.plan import Link
from contract.proof import Proven
from orchestrator.lab import expected
from orchestrator.lab.clock import SECOND
from orchestrator.lab.intervals import AGAIN, NEARLY
from orchestrator.lab.judgement import ProofResult, Seen, decides, shown, verdict
from orchestrator.lab.operations import Probe
from orchestrator.lab.probes import (
    BOTH,
    FRAMES_LEAST,
    TRAIN_FRAMES_LEAST,
    TRAIN_FRAMES_MOST,
    at_once,
    length_ns,
    probe_of,
    train,
    train_size,
    transmission_ns,
)
from orchestrator.lab.tolerance import Tolerances
from orchestrator.lab.train import OFFER_FACTOR, offered_bps, paced, too_lossy, too_slow

Results = Mapping[tuple[str, str], Seen]
UNBOUNDED_NS = 10**6 * SECOND
AHEAD = 1.5  # rate that each direction offers, as a multiple of the link's rate
LONGER = 4  # length of a train, as a multiple of that for one direction, since two directions share the rate
FINER = 3  # the error of the measured rate is at most the tolerance divided by this, if time allows


def probes(links: Sequence[Link], tolerances: Tolerances, most_ns: int) -> list[Probe]:
    """Returns trains for both directions of each half-duplex link with a rate. Both are sent at the same
    time, each at 1.5 times the rate, so that neither ends before the other begins.

    The trains are so long that the error is a third of the rate's tolerance, but take at most `most_ns`.
    """
    found: list[Probe] = []
    for link in _shared(links):
        requested = link.forward.impairment
        expects = expected.rate_bps(requested)
        steps = math.ceil(FINER * expects / tolerances.rate.of(expects))
        interval = max(1, transmission_ns(train_size(requested), requested) * 2 // 3)
        for way, direction in (("forward", link.forward), ("reverse", link.reverse)):
            alone = train(link.name, way, direction, TRAIN_FRAMES_MOST)
            count = max(
                LONGER * alone["count"], min(at_once(requested) + steps * 3 // 2, most_ns // interval)
            )
            sent = probe_of(link.name, way, direction, count, alone["size"], interval)
            found.append({**sent, "timeout_ns": 2 * sent["timeout_ns"]})
    return found


def further(links: Sequence[Link], judged: Sequence[Proven], left_ns: int) -> list[Probe]:
    """Returns longer trains for the undecided rates, limited so that they take at most `left_ns`."""
    found = [_longer(link, line) for line in judged for link in links if link.name == line.link]
    return [probe for trains in found if trains and length_ns(trains) <= left_ns for probe in trains]


def _longer(link: Link, line: Proven) -> list[Probe]:
    """Returns longer trains for both directions of a link whose rate is undecided; together they have the
    number of frames that the verdict needs. Empty for a decided rate, or if no number of frames decides it.

    The frames that pass the loss are sent at 1.5 times the rate in each direction.
    """
    ways = (link.forward, link.reverse)
    lossy = any(expected.passing(one.impairment) < expected.LEAST_PASSING for one in ways)
    if line.verdict != "cannot tell" or line.needs is None or lossy:
        return []
    found: list[Probe] = []
    for way, direction in (("forward", link.forward), ("reverse", link.reverse)):
        requested = direction.impairment
        size, carried = train_size(requested), at_once(requested) + line.needs
        spacing = max(1, transmission_ns(size, requested))
        interval = max(1, round(spacing * expected.passing(requested) / AHEAD))
        count = max(2, math.ceil(carried * spacing / expected.shown(requested) / interval))
        sent = probe_of(link.name, way, direction, carried, size, interval)
        found.append({**sent, "count": count, "timeout_ns": 2 * sent["timeout_ns"]})
    return found


def told(line: Proven, links: Sequence[Link], tolerances: Tolerances, most_ns: int) -> Proven:
    """Adds to the reason of an undecided verdict the time or length that would decide it; returns other
    verdicts unchanged. most_ns: the time that the trains may take.
    """
    of = [link for link in links if link.name == line.link]
    trains = [probe for link in of for probe in _longer(link, line)]
    if not trains:
        return line
    longer_ns, first_ns = length_ns(trains), length_ns(probes(of, tolerances, UNBOUNDED_NS))
    # If there is time, the first trains are longer, so that they decide even if loss removes many of their
    # frames.
    enough = all(2 * AHEAD * expected.passing(link.forward.impairment) >= OFFER_FACTOR for link in of)
    whole_ns = longer_ns if enough and longer_ns <= first_ns else first_ns + longer_ns
    return replace(line, reason=f"{line.reason}; {decides(whole_ns, most_ns)}")


def judge(links: Sequence[Link], together: Results, tolerances: Tolerances) -> Iterator[Proven]:
    """Yields a judgement (quantity `rate`, direction `both`) for each half-duplex link with a rate."""
    for link in _shared(links):
        yield _rate(link, [together.get((link.name, way)) for way in ("forward", "reverse")], tolerances)


def _shared(links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.half_duplex and link.forward.impairment.rate_bps]


def _rate(link: Link, trains: Sequence[Seen | None], tolerances: Tolerances) -> Proven:
    """Judges the rate of both directions together, from the frames that arrived while both directions were
    sending. The verdict is "cannot tell" in these cases: the link has slots, too few frames arrived (in total
    or in that time), the senders were too slow, or the loss left too few frames of the trains.
    """
    requested = link.forward.impairment
    expects = expected.rate_bps(requested)
    tolerance = tolerances.rate.of(expects)

    def untold(why: str, n: int, needs: int | None = None) -> Proven:
        return _line(link, expects, None, n, "cannot tell", why, tolerance, needs)

    if requested.slot is not None:
        return untold("slots let frames go together, which hides the rate's spacing", 0)
    seen = [one for one in trains if one is not None]
    least = max(TRAIN_FRAMES_LEAST, math.ceil(FINER * expects / tolerance)) if tolerance else None
    arrivals = [sorted(one.arrivals_ns)[at_once(requested) :] for one in seen]
    offered = sum(offered_bps(one, train_size(requested)) for one in seen if len(one.arrivals_ns) > 1)
    passed = offered * expected.passing(requested)
    few = min(map(len, arrivals), default=0)
    if len(arrivals) < 2 or few < FRAMES_LEAST:
        return untold(f"{few} frames are too few", few, least and _again(link, seen, least))
    begin, end = max(a[0] for a in arrivals), min(a[-1] for a in arrivals)
    inside = sorted(at for a in arrivals for at in a if begin <= at <= end)
    if len(inside) < FRAMES_LEAST:
        why = "the two directions did not send at the same time; prove again when the machine is idle"
        return untold(why, len(inside))
    if offered < OFFER_FACTOR * expects:
        return untold(too_slow(offered), len(inside))
    if passed < OFFER_FACTOR * expects:
        return untold(too_lossy(passed), len(inside), least and _again(link, seen, least))
    steps = len(inside) - 1
    rate, error = paced(requested, inside, _sum(seen))
    interval = (rate - error, rate + error)
    judged = verdict(*interval, expects - tolerance, expects + tolerance)
    got = f"both directions together got {shown('bit/s', *interval)}, tolerance {shown('bit/s', tolerance)}"
    needs = None
    # Further frames help, because the error shrinks with the number of steps.
    if judged == "cannot tell" and tolerance:
        edge = max(abs(tolerance - abs(rate - expects)), error / 4)
        needs = max(math.ceil(AGAIN * steps), math.ceil(steps * error / (NEARLY * edge)))
    reason = "" if judged == "holds" else got
    return _line(link, expects, (rate, interval), len(inside), judged, reason, tolerance, needs)


def _sum(seen: Sequence[Seen]) -> Seen:
    arrivals = sorted(at for one in seen for at in one.arrivals_ns)
    sent, received, copies, damaged = (
        sum(values)
        for values in zip(*((o.sent, o.received, o.duplicates, o.corrupted) for o in seen), strict=True)
    )
    return Seen(sent, received, copies, damaged, arrivals, arrivals)


def _again(link: Link, seen: Sequence[Seen], needs: int) -> int | None:
    """Returns `needs` (the length of the next train); None if trains of that length were sent before, or no
    length is enough.
    """
    line = _line(link, 0.0, None, 0, "cannot tell", "", 0.0, needs)
    longer = max((probe["count"] for probe in _longer(link, line)), default=0)
    return None if any(one.sent >= longer for one in seen) else needs


def _line(
    link: Link, expects: float, found: tuple[float, tuple[float, float]] | None, n: int,
    verdict: ProofResult, reason: str, tolerance: float, needs: int | None = None,
) -> Proven:  # fmt: skip
    rate, (low, high) = found if found is not None else (None, (None, None))
    return Proven(
        link.name, BOTH, "rate", float(link.forward.impairment.rate_bps), expects, rate, low, high, "bit/s",
        n, verdict, reason, tolerance, None, needs,
    )  # fmt: skip
