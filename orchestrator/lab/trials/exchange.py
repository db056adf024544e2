"""One trial through the driver: the receiver listens, the sender sends, the receiver says what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.trials.trial import Outcome, Trial
from orchestrator.software.frames.trials import Frames

PATIENCE_NS = 30 * SECOND  # beyond what a trial takes by itself
TRIAL_NUMBERS = (
    1 << 15
)  # the frame has two bytes for it, of which the receiver's learning frames use the upper half
COUNTS = ("received", "duplicates", "reordered", "corrupted", "foreign", "early", "ring_dropped")

Call = Callable[..., Message]  # the driver's


def exchange(call: Call, node: str, frames: Frames, trial: Trial, number: int) -> Outcome:
    """Carry a trial out; LabError where a node cannot take part in it."""
    stamp = number % TRIAL_NUMBERS
    length_ns = longest_ns(frames, trial)
    receiver = {"node": frames.to, "iface": frames.to_interface}
    armed = call("frames", action="listen", trial=stamp, count=trial.count, **receiver)
    sent = call(
        "frames", action="send", node=node, iface=frames.interface, to=armed["mac"], trial=stamp,
        count=trial.count, size=trial.size, rate_fps=trial.rate_fps, bypass=frames.bypass,
        longest_ns=length_ns, patience_ns=length_ns + PATIENCE_NS,
    )  # fmt: skip
    got = call(
        "frames", action="collect", node=frames.to, sent=sent["sent"], wait_ns=frames.settle_ns,
        patience_ns=frames.settle_ns + PATIENCE_NS,
    )  # fmt: skip
    return _outcome(trial, sent, got)


def longest_ns(frames: Frames, trial: Trial) -> int:
    """When a sender that is too slow gives up; its trial then has fewer frames."""
    return round(trial.count * SECOND / trial.rate_fps) if trial.rate_fps else 4 * frames.burst_ns + SECOND


def _outcome(trial: Trial, sent: dict[str, Any], got: dict[str, Any]) -> Outcome:
    latency = got["latency"]
    mean = latency["sum_ns"] / got["received"] if got["received"] else None
    return Outcome(
        trial, sent["sent"], sent["refused"], sent["late_ns"], sent["first_ns"], sent["last_ns"],
        **{name: got[name] for name in COUNTS},
        rx_first_ns=got["first_ns"], rx_last_ns=got["last_ns"], tagged_ns=got["tagged_ns"],
        latency_min_ns=latency["min_ns"], latency_mean_ns=mean, latency_max_ns=latency["max_ns"],
        buckets=tuple((low, high, count) for low, high, count in latency["buckets"]),
    )  # fmt: skip
