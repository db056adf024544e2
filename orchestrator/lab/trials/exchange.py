"""Carries out one trial through the driver: the receiver listens, the sender sends, the receiver reports its
counts.
"""

from __future__ import annotations

from orchestrator.lab.clock import SECOND
from orchestrator.lab.operations import (
    Call,
    CollectFrames,
    FramesReceived,
    FramesSent,
    ListenForFrames,
    SendFrames,
)
from orchestrator.lab.trials.trial import Outcome, Trial
from orchestrator.software.frames.trials import Frames

PATIENCE_NS = 30 * SECOND  # longest time that a trial may take beyond its own duration
TRIAL_NUMBERS = (
    1 << 15
)  # a frame has two bytes for the number; the receiver's learning frames use the upper half of its values


def exchange(call: Call, node: str, frames: Frames, trial: Trial, number: int) -> Outcome:
    """Carries out a trial through `call`, from `node` to the receiver that `frames` names, and returns its
    outcome; raises LabError if a node cannot take part. `number` identifies the trial's frames.
    """
    stamp = number % TRIAL_NUMBERS
    length_ns = longest_ns(frames, trial)
    armed = call(ListenForFrames(stamp, trial.count, frames.to, frames.to_interface))
    sent = call(
        SendFrames(
            node, frames.interface, armed["mac"], stamp, trial.count, trial.size, trial.rate_fps,
            frames.bypass, length_ns,
        ),
        patience_ns=length_ns + PATIENCE_NS,
    )  # fmt: skip
    got = call(
        CollectFrames(frames.to, sent["sent"], frames.settle_ns), patience_ns=frames.settle_ns + PATIENCE_NS
    )
    return _outcome(trial, sent, got)


def longest_ns(frames: Frames, trial: Trial) -> int:
    """Returns the time (ns) after which a sender stops if it is too slow; its trial then has fewer frames.
    The time is the trial's length, or for a burst four burst lengths and a second.
    """
    return round(trial.count * SECOND / trial.rate_fps) if trial.rate_fps else 4 * frames.burst_ns + SECOND


def _outcome(trial: Trial, sent: FramesSent, got: FramesReceived) -> Outcome:
    latency = got["latency"]
    mean = latency["sum_ns"] / got["received"] if got["received"] else None
    return Outcome(
        trial, sent["sent"], sent["refused"], sent["late_ns"], sent["first_ns"], sent["last_ns"],
        received=got["received"], duplicates=got["duplicates"], reordered=got["reordered"],
        corrupted=got["corrupted"], foreign=got["foreign"], early=got["early"],
        ring_dropped=got["ring_dropped"],
        rx_first_ns=got["first_ns"], rx_last_ns=got["last_ns"], tagged_ns=got["tagged_ns"],
        latency_min_ns=latency["min_ns"], latency_mean_ns=mean, latency_max_ns=latency["max_ns"],
        buckets=tuple((low, high, count) for low, high, count in latency["buckets"]),
    )  # fmt: skip
