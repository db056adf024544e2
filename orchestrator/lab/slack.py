"""How tight a proof is: what the file asks, else what the kernel that the lab runs in can do.

In virtual time a machine adds nothing to a delay; a host's kernel wakes up within 0.2 ms; a lab kernel in
real time is a program among others, so what it adds on a quiet second is measured, within the bounds below.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.lab.clock import MILLISECOND
from orchestrator.model.slack import ProofSettings, Slack


@dataclass(frozen=True, slots=True)
class Slacks:
    """One for each quantity that has a slack; shares are judged by their interval."""

    delay: Slack
    jitter: Slack
    rate: Slack


@dataclass(frozen=True, slots=True)
class Noise:
    """What the machine adds to frames over a wire with a fixed delay: to their mean, to their median, to the
    distance of their quartiles; ns.
    """

    mean_ns: float
    median_ns: float
    spread_ns: float


VIRTUAL = Slacks(Slack(0.05 * MILLISECOND), Slack(share=0.05), Slack(share=0.005))
HOST = Slacks(Slack(0.2 * MILLISECOND, 0.01), Slack(0.2 * MILLISECOND, 0.05), Slack(share=0.01))
# Never wider: also where nobody can measure, as through the virtual machine that carries a link's netem.
WIDEST = Slacks(Slack(MILLISECOND, 0.05), Slack(0.5 * MILLISECOND, 0.15), Slack(share=0.05))


def settle(asked: ProofSettings, *, kernel: str, virtual: bool, quiet: Noise | None) -> Slacks:
    """What holds in a lab; `quiet`: measured before the proof, where nothing else was sent."""
    if virtual:
        default = VIRTUAL
    elif kernel == "host":
        default = HOST
    else:
        default = _between(quiet)
    return Slacks(asked.delay or default.delay, asked.jitter or default.jitter, asked.rate or default.rate)


def _between(quiet: Noise | None) -> Slacks:
    if quiet is None:
        return WIDEST
    added = max(abs(quiet.mean_ns), abs(quiet.median_ns))
    return Slacks(
        _clamped(added, HOST.delay, WIDEST.delay),
        _clamped(quiet.spread_ns, HOST.jitter, WIDEST.jitter),
        HOST.rate,  # a train's own frames tell what the machine adds to their spacing
    )


def _clamped(amount: float, least: Slack, most: Slack) -> Slack:
    return Slack(min(max(amount, least.amount), most.amount), least.share)
