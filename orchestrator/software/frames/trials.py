"""Defines the settings of RFC 2544 trials for the lab process; imports the standard library only."""

from __future__ import annotations

from dataclasses import dataclass

KIND_NAME = "frames"


@dataclass(frozen=True, slots=True)
class Frames:
    """The settings of RFC 2544 trials from an interface of this node to one of another; sizes count the
    FCS.
    """

    to: str  # the node that receives
    interface: str  # an interface of this node
    to_interface: str
    sizes: tuple[int, ...]
    tests: tuple[str, ...]  # throughput, latency, frame-loss, back-to-back
    line_rate_bps: int
    path_rate_bps: int  # lowest requested rate of the links in between; 0: none
    trial_ns: int
    settle_ns: int  # longest time that the receiver waits for the last frames
    resolution: float
    tolerate: float  # share of lost frames that counts as none
    loss_step: float
    latency_trials: int
    latency_trial_ns: int
    burst_ns: int
    burst_trials: int
    bypass: bool = False  # whether frames bypass the qdisc of the sender's NIC
