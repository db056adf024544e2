"""Computes the effects of an impairment that a long measurement shows: shares of the frames sent, delay,
jitter, rate.

They differ from the topology's values: netem's correlation changes the frequency of events
(orchestrator/plan/correlation.py), a duplicate replaces a lost frame, a lost frame shows no flipped bit.
"""

from __future__ import annotations

from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.probes import HEADER, spaced_size, train_size, transmission_ns
from orchestrator.plan.correlation import effective_share
from orchestrator.plan.netem import queue_limit


def requested_loss(i: Impairment) -> float:
    """Returns the share of loss that the topology requests; of the Gilbert-Elliott model the mean of its
    states, whose losses are 1-h (bad) and 1-k (good).
    """
    if i.gemodel is None:
        return i.loss
    p, r, bad_loss, good_loss = i.gemodel
    bad = p / (p + r) if p + r else 0.0
    return bad * bad_loss + (1 - bad) * good_loss


def stationary_loss(i: Impairment) -> float:
    """Returns the share of frames that the impairment loses in the long run, duplicates not considered."""
    return effective_share(i.loss, i.loss_correlation) if i.gemodel is None else requested_loss(i)


def loss_memory(i: Impairment) -> float:
    """Returns the correlation of neighbouring losses."""
    if i.gemodel:
        return max(0.0, 1 - i.gemodel[0] - i.gemodel[1])
    return i.loss_correlation


def lost(i: Impairment) -> float:
    """Returns the share of frames that never arrive: both copies are lost, or a flipped bit in the header
    hides the frame.
    """
    hidden = _corrupt(i) * HEADER / spaced_size(i)
    return 1 - (1 - stationary_loss(i) * (1 - _duplicate(i))) * (1 - hidden)


def duplicated(i: Impairment) -> float:
    """Returns the share of frames that arrive twice: neither copy is lost."""
    return _duplicate(i) * (1 - stationary_loss(i)) ** 2


def corrupted(i: Impairment) -> float:
    """Returns the share of frames that arrive with a flipped bit after the header."""
    return _corrupt(i) * (1 - HEADER / spaced_size(i)) * (1 - stationary_loss(i))


def reordered(i: Impairment) -> float:
    """Returns the share of frames that skip the queue."""
    return effective_share(i.reorder, i.reorder_correlation)


def _duplicate(i: Impairment) -> float:
    return effective_share(i.duplicate, i.duplicate_correlation)


def _corrupt(i: Impairment) -> float:
    return effective_share(i.corrupt, i.corrupt_correlation)


# Mean and standard deviation of iproute2's tables of delays (normal.dist and so on), in jitters. Their values
# are 16 bits wide, so they end at four jitters, although the tails of the last two distributions are longer.
TABLES = {"normal": (-0.0008, 1.0001), "pareto": (-0.0335, 0.8197), "paretonormal": (-0.0253, 0.8339)}


def mean_ns(i: Impairment) -> float:
    """Returns the mean of the delays (ns) that netem draws."""
    mean, _ = TABLES.get(i.distribution, (0.0, 1.0))
    return i.delay_ns + mean * i.jitter_ns


def jitter_ns(i: Impairment) -> float:
    """Returns the standard deviation (ns) of the delays that netem draws."""
    _, deviation = TABLES.get(i.distribution, (0.0, 1.0))
    return deviation * i.jitter_ns


def rate_bps(i: Impairment) -> float:
    """Returns the rate (bit/s) of a long train of frames; 0 without a rate.

    netem takes whole nanoseconds for each frame (packet_time_ns), which is 0.6 % too fast for 127 bytes at 10
    Gbit/s.
    """
    exact = float(queueing.lone_bps(i))
    if not exact or i.queue is not None or i.backpressure:
        return exact
    size = train_size(i)
    return size * 8 * SECOND / max(1, transmission_ns(size, i))


def short_queue(i: Impairment) -> bool:
    """Returns whether the direction has a queue of a stated kind, or a shorter one than its rate and delay
    need, so that it may drop frames.
    """
    return i.queue is not None or bool(
        i.present and i.limit_packets < queue_limit(i.delay_ns, i.jitter_ns, i.rate_bps)
    )
