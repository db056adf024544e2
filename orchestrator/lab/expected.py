"""Computes the effects of an impairment that a long measurement shows: shares of the frames sent, delay,
jitter, rate.

They differ from the topology's values, because netem's correlation changes the frequency of events
(orchestrator/plan/correlation.py), a duplicate replaces a lost frame, and a lost frame shows no flipped bit.
"""

from __future__ import annotations

import math

from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.probes import HEADER, spaced_size, train_size, transmission_ns
from orchestrator.plan.correlation import effective_share, spared_twice
from orchestrator.plan.netem import queue_limit

# Bytes of a frame that hide it from the receiver if a bit flips: its destination and its type. Earlier
# versions used 14. The present version still uses 14 if that changes the result little, so that the bytes of
# proofs stay the same.
UNSEEN = 8
LEAST_PASSING = 0.01  # the least share of frames that must pass the loss for a longer train to be worthwhile
MINGLED = 0.02  # a correction by less than this part of a share (a tenth of the tolerance) is left out


def requested_loss(i: Impairment) -> float:
    """Returns the share of loss that the topology requests. For the Gilbert-Elliott model it is the mean over
    its states, whose losses are 1-h (bad) and 1-k (good).
    """
    if i.gemodel is None:
        return i.loss
    p, r, bad_loss, good_loss = i.gemodel
    bad = p / (p + r) if p + r else 0.0
    return bad * bad_loss + (1 - bad) * good_loss


def stationary_loss(i: Impairment) -> float:
    """Returns the share of frames that the impairment loses in the long run, not considering duplicates."""
    return effective_share(i.loss, i.loss_correlation) if i.gemodel is None else requested_loss(i)


def loss_memory(i: Impairment) -> float:
    """Returns the correlation between the losses of neighbouring frames."""
    if i.gemodel:
        return max(0.0, 1 - i.gemodel[0] - i.gemodel[1])
    return i.loss_correlation


def lost(i: Impairment) -> float:
    """Returns the share of frames that never arrive: both copies are lost, or a flipped bit in the header
    hides the frame.
    """
    kept = 1 - stationary_loss(i) * (1 - _duplicate(i))
    found = 1 - kept * (1 - _corrupt(i) * HEADER / spaced_size(i))
    exact = 1 - kept * (1 - _corrupt(i) * UNSEEN / spaced_size(i))
    return exact if _mingled(i) or found - exact > MINGLED * found else found


def passing(i: Impairment) -> float:
    """Returns the share of frames that are not lost and so are on the link, at least 1e-6; copies do not
    count.
    """
    return max(1e-6, 1 - stationary_loss(i) * (1 - _duplicate(i)))


def shown(i: Impairment) -> float:
    """Returns the share of the frames on the link whose arrival a probe reports: the first copies without a
    flipped bit that did not skip the queue.
    """
    return (1 - _corrupt(i)) * (1 - reordered(i)) / (1 + _duplicate(i))


def duplicated(i: Impairment) -> float:
    """Returns the share of frames of which two intact copies arrive: neither copy is lost, and neither has a
    flipped bit.
    """
    return _twice(i) * ((1 - _corrupt(i)) ** 2 if _mingled(i) else 1.0)


def corrupted(i: Impairment) -> float:
    """Returns the number of arrivals with a flipped bit after the header, per sent frame; netem decides for
    each copy separately.
    """
    if _mingled(i):
        return _corrupt(i) * (1 - UNSEEN / spaced_size(i)) * copies(i)
    return _corrupt(i) * (1 - HEADER / spaced_size(i)) * (1 - stationary_loss(i))


def copies(i: Impairment) -> float:
    """Returns the mean number of copies of a frame that pass the loss."""
    return 1 - stationary_loss(i) * (1 - _duplicate(i)) + _twice(i)


def judged_copies(i: Impairment) -> float:
    """Returns the number of copies of a frame to which its share of flipped bits refers: one, or the mean
    number of copies if copies and flipped bits affect each other's share.
    """
    return max(1.0, copies(i)) if _mingled(i) else 1.0


def counted_twice(i: Impairment) -> float:
    """Returns the share of frames that a probe counts once too often. It counts both copies of a frame if it
    cannot recognise the second one because of a flipped bit.
    """
    flipped = _corrupt(i) if _mingled(i) else 0.0
    return _twice(i) * flipped * (2 - flipped - UNSEEN / spaced_size(i))


def _mingled(i: Impairment) -> bool:
    """Returns whether duplication and corruption change each other's share by more than a fiftieth, which is
    a tenth of the tolerance. If not, each share is computed alone.
    """
    return min(_duplicate(i), _corrupt(i)) > 0 and max(_duplicate(i), _corrupt(i)) > MINGLED


def _twice(i: Impairment) -> float:
    """Returns the share of frames of which both copies are not lost; netem draws for the copy right after the
    frame.
    """
    if i.gemodel is None:
        return _duplicate(i) * spared_twice(i.loss, i.loss_correlation)
    p, r, bad_loss, good_loss = i.gemodel
    bad = p / (p + r) if p + r else 0.0
    after_bad = (1 - r) * (1 - bad_loss) + r * (1 - good_loss)
    after_good = p * (1 - bad_loss) + (1 - p) * (1 - good_loss)
    return _duplicate(i) * (bad * (1 - bad_loss) * after_bad + (1 - bad) * (1 - good_loss) * after_good)


def reordered(i: Impairment) -> float:
    """Returns the share of frames that skip the queue."""
    return effective_share(i.reorder, i.reorder_correlation)


def _duplicate(i: Impairment) -> float:
    return effective_share(i.duplicate, i.duplicate_correlation)


def _corrupt(i: Impairment) -> float:
    return effective_share(i.corrupt, i.corrupt_correlation)


# Mean and standard deviation of iproute2's tables of delays (normal.dist and so on), in units of the jitter.
# The values of a table are 16 bits wide, so they end at four jitters, although the tails of the last two
# distributions are longer.
TABLES = {"normal": (-0.0008, 1.0001), "pareto": (-0.0335, 0.8197), "paretonormal": (-0.0253, 0.8339)}


# For the earlier of two copies, which may overtake each other, in units of the jitter: the decrease of the
# mean delay, the deviation of one copy, and the deviation of the earlier copy. The values of the uniform and
# the normal law are computed (David and Nagaraja, Order Statistics, 2003, 3.1), the others measured with
# 30,000 frames.
FIRST = {
    "uniform": (1 / 3, math.sqrt(1 / 3), math.sqrt(2 / 9)),
    "normal": (1 / math.sqrt(math.pi), 1.0, math.sqrt(1 - 1 / math.pi)),
    "pareto": (0.369, 0.8197, 0.33),
    "paretonormal": (0.409, 0.8339, 0.44),
}


def overtaking(i: Impairment) -> float:
    """Returns the share of frames that arrive twice and have the delay of the earlier copy; 0 without jitter,
    or if netem keeps packets in order.
    """
    ordered = i.rate_bps or i.netem_stays or i.slot is not None
    return 0.0 if ordered or not i.jitter_ns else duplicated(i)


def mean_ns(i: Impairment) -> float:
    """Returns the mean of the delays (ns) of arriving frames: the mean of the delays that netem draws, or
    less if copies overtake their frames.
    """
    mean, _ = TABLES.get(i.distribution, (0.0, 1.0))
    fall = FIRST[i.distribution][0] if i.distribution in FIRST else 0.0
    return i.delay_ns + (mean - overtaking(i) * fall) * i.jitter_ns


def jitter_ns(i: Impairment) -> float:
    """Returns the standard deviation (ns) of the delays that frames have; for a uniform distribution, the
    jitter (half its width) that has this deviation.
    """
    _, deviation = TABLES.get(i.distribution, (0.0, 1.0))
    if (twice := overtaking(i)) and i.distribution in FIRST:
        fall, one, first = FIRST[i.distribution]
        both = (1 - twice) * one**2 + twice * first**2 + twice * (1 - twice) * fall**2
        deviation *= math.sqrt(both) / one
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
    """Returns whether the direction may drop frames because its queue has a stated kind, or is shorter than
    its rate and delay need.
    """
    return i.queue is not None or bool(
        i.present and i.limit_packets < queue_limit(i.delay_ns, i.jitter_ns, i.rate_bps)
    )
