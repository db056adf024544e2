"""Chooses the tolerances of a proof: those of the topology file, else those that the lab's kernel can meet.

In virtual time a machine adds nothing to a delay; a host's kernel wakes up within 0.2 ms; a lab kernel in
real time is a program among others, so its added delay is measured for a second, within the bounds below.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.lab.clock import MILLISECOND
from orchestrator.model.tolerance import ProofSettings, Tolerance


@dataclass(frozen=True, slots=True)
class Tolerances:
    """One for each quantity that has a tolerance of its own; that of shares is `of_share`."""

    delay: Tolerance
    jitter: Tolerance
    rate: Tolerance
    of_jitter: float = 0.0  # share of a jitter to which the mean of a jittered delay is judged at least
    exact: bool = False  # the machine adds nothing to a delay


@dataclass(frozen=True, slots=True)
class Noise:
    """What the machine adds to frames over a wire with a fixed delay: to their mean, to their median, to the
    distance of their quartiles; ns.
    """

    mean_ns: float
    median_ns: float
    spread_ns: float


# Jitters, and the means of jittered delays, are told to a tenth of the jitter: from 1,000 to 3,000 frames,
# with the 99 % of judge.py. A twentieth would take four times as many.
OF_JITTER = 0.1
VIRTUAL = Tolerances(
    Tolerance(0.05 * MILLISECOND),
    Tolerance(share=OF_JITTER),
    Tolerance(share=0.005),
    of_jitter=OF_JITTER,
    exact=True,
)
HOST = Tolerances(
    Tolerance(0.2 * MILLISECOND, 0.01),
    Tolerance(0.2 * MILLISECOND, OF_JITTER),
    Tolerance(share=0.01),
    of_jitter=OF_JITTER,
)
# Never wider: also where nobody can measure, as through the virtual machine that carries a link's netem.
WIDEST = Tolerances(
    Tolerance(MILLISECOND, 0.05),
    Tolerance(0.5 * MILLISECOND, 0.15),
    Tolerance(share=0.05),
    of_jitter=OF_JITTER,
)
RARE = 0.01  # a share below it is judged to a half of it, any other to a quarter
ROUGH, FINE = 0.5, 0.25


def of_share(expected: float) -> float:
    """How far a share may be from the one expected."""
    return expected * (ROUGH if expected < RARE else FINE)


def settle(requested: ProofSettings, *, kernel: str, virtual: bool, quiet: Noise | None) -> Tolerances:
    """What holds in a lab; `quiet`: measured before the proof, where nothing else was sent."""
    if virtual:
        default = VIRTUAL
    elif kernel == "host":
        default = HOST
    else:
        default = _between(quiet)
    return Tolerances(
        requested.delay or default.delay,
        requested.jitter or default.jitter,
        requested.rate or default.rate,
        0.0 if requested.delay else default.of_jitter,
        default.exact,
    )


def _between(quiet: Noise | None) -> Tolerances:
    if quiet is None:
        return WIDEST
    added = max(abs(quiet.mean_ns), abs(quiet.median_ns))
    return Tolerances(
        _clamped(added, HOST.delay, WIDEST.delay),
        _clamped(quiet.spread_ns, HOST.jitter, WIDEST.jitter),
        HOST.rate,  # a train's own frames tell what the machine adds to their spacing
        OF_JITTER,
    )


def _clamped(amount: float, least: Tolerance, most: Tolerance) -> Tolerance:
    return Tolerance(min(max(amount, least.amount), most.amount), least.share)
