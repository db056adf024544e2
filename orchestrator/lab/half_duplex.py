"""Proves the rate of half-duplex links: simultaneous trains in both directions must share the rate of one
direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from contract.plan import Link
from contract.proof import Proven
from orchestrator.lab import expected
from orchestrator.lab.clock import SECOND
from orchestrator.lab.judgement import ProofResult, Seen, shown, verdict
from orchestrator.lab.operations import Probe
from orchestrator.lab.probes import (
    BOTH,
    FRAMES_LEAST,
    TRAIN_FRAMES_MOST,
    at_once,
    probe_of,
    train,
    train_size,
    transmission_ns,
)
from orchestrator.lab.tolerance import Tolerances
from orchestrator.lab.train import OFFER_FACTOR, offered_bps, too_slow

Results = Mapping[tuple[str, str], Seen]
LONGER = 4  # length of a train, in trains of one direction, since two directions share the rate
FINER = 3  # the error of the measured rate is at most this part of the tolerance, if time allows


def probes(links: Sequence[Link], tolerances: Tolerances, most_ns: int) -> list[Probe]:
    """Returns trains for both directions of each half-duplex link with a rate, which are sent at the same
    time, each at 1.5 times the rate, so that neither ends before the other begins.

    They are long enough for an error of a third of the tolerance of the rate, but take at most `most_ns`.
    """
    found: list[Probe] = []
    for link in links:
        requested = link.forward.impairment
        if not link.half_duplex or not requested.rate_bps:
            continue
        expects = expected.rate_bps(requested)
        steps = math.ceil(FINER * expects / tolerances.rate.of(expects))
        paced = max(1, transmission_ns(train_size(requested), requested) * 2 // 3)
        for way, direction in (("forward", link.forward), ("reverse", link.reverse)):
            alone = train(link.name, way, direction, TRAIN_FRAMES_MOST)
            count = max(LONGER * alone["count"], min(at_once(requested) + steps * 3 // 2, most_ns // paced))
            sent = probe_of(link.name, way, direction, count, alone["size"], paced)
            found.append({**sent, "timeout_ns": 2 * sent["timeout_ns"]})
    return found


def judge(links: Sequence[Link], together: Results, tolerances: Tolerances) -> Iterator[Proven]:
    """Yields a judgement (quantity `rate`, direction `both`) for each half-duplex link with a rate."""
    for link in links:
        if link.half_duplex and link.forward.impairment.rate_bps:
            yield _rate(link, [together.get((link.name, way)) for way in ("forward", "reverse")], tolerances)


def _rate(link: Link, trains: Sequence[Seen | None], tolerances: Tolerances) -> Proven:
    """Judges the rate of both directions together, from the arrivals while both were sending. The verdict is
    "cannot tell" if the link has slots, if too few frames arrived (in that time, too), or if the senders were
    too slow.
    """
    requested = link.forward.impairment
    whole, expects = float(requested.rate_bps), expected.rate_bps(requested)
    tolerance = tolerances.rate.of(expects)
    if requested.slot is not None:
        why = "slots let frames go together, which hides the rate's spacing"
        return _line(link, whole, expects, None, 0, "cannot tell", why, tolerance)
    arrivals = [sorted(seen.arrivals_ns)[at_once(requested) :] for seen in trains if seen is not None]
    if len(arrivals) < 2 or min(map(len, arrivals)) < FRAMES_LEAST:
        few = min(map(len, arrivals), default=0)
        return _line(link, whole, expects, None, few, "cannot tell", f"{few} frames are too few", tolerance)
    begin, end = max(a[0] for a in arrivals), min(a[-1] for a in arrivals)
    inside = sorted(at for a in arrivals for at in a if begin <= at <= end)
    if len(inside) < FRAMES_LEAST:
        why = "the two directions did not send at the same time; prove again when the machine is idle"
        return _line(link, whole, expects, None, len(inside), "cannot tell", why, tolerance)
    offered = sum(offered_bps(seen, train_size(requested)) for seen in trains if seen is not None)
    if offered < OFFER_FACTOR * expects:
        return _line(link, whole, expects, None, len(inside), "cannot tell", too_slow(offered), tolerance)
    steps, span = len(inside) - 1, inside[-1] - inside[0]
    rate = steps * train_size(requested) * 8 * SECOND / span
    error = rate / steps  # the edges of the window can each cut a frame
    interval = (rate - error, rate + error)
    judged = verdict(*interval, expects - tolerance, expects + tolerance)
    got = f"both directions together got {shown('bit/s', *interval)}, tolerance {shown('bit/s', tolerance)}"
    reason = "" if judged == "holds" else got
    return _line(link, whole, expects, (rate, interval), len(inside), judged, reason, tolerance)


def _line(
    link: Link, requested: float, expects: float, found: tuple[float, tuple[float, float]] | None, n: int,
    verdict: ProofResult, reason: str, tolerance: float,
) -> Proven:  # fmt: skip
    rate, (low, high) = found if found is not None else (None, (None, None))
    return Proven(
        link.name,
        BOTH,
        "rate",
        requested,
        expects,
        rate,
        low,
        high,
        "bit/s",
        n,
        verdict,
        reason,
        tolerance,
        None,
    )
