"""Chooses the tolerances of a link proof: those of the topology, else those that the lab's kernel can meet.

In virtual time the machine adds nothing to a delay, and a host's kernel wakes up within 0.2 ms. A lab kernel
in real time is one program among many, so its added delay is measured before the proof and determines the
tolerance, within fixed bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from contract.plan.tolerance import ProofSettings, Tolerance
from orchestrator.lab.clock import MILLISECOND


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The tolerances of delay, jitter and rate of a lab's link proof; `of_share` gives those of shares."""

    delay: Tolerance
    jitter: Tolerance
    rate: Tolerance
    of_jitter: float = 0.0  # least tolerance for the mean of delays with jitter, as a share of the jitter
    exact: bool = False  # whether the machine adds nothing to a delay
    # tolerance of jitter for a proof that may not take long enough to decide with `jitter`, which is
    # narrower; None: `jitter` is used then, too
    rough_jitter: Tolerance | None = None

    def rough(self) -> Tolerances:
        """Returns the tolerances with wider ones for jitter and for the mean of jittered delays, for a proof
        with little time; tolerances that the topology sets stay.
        """
        of_jitter = ROUGH_OF_JITTER if self.of_jitter else 0.0
        return replace(self, jitter=self.rough_jitter or self.jitter, of_jitter=of_jitter)


@dataclass(frozen=True, slots=True)
class Noise:
    """The delay (ns) that the machine adds to frames over a wire with a fixed delay: its mean, its median and
    its interquartile range.
    """

    mean_ns: float
    median_ns: float
    spread_ns: float


# The tolerance of jitters, and of means of jittered delays, is a twentieth of the jitter. With the 99 % of
# judge.py, this takes some 4,000 frames of a uniform jitter in virtual time, and 11,000 of a normal one. In
# real time it takes 18,000, because quartiles measure the jitter and need more. If a proof may not take that
# long (`at_most`), the tolerance is a tenth, with a quarter of the frames. Behind a rate, frames are four
# jitters apart, so that 60 s hold 3,000 of them at 5 ms.
OF_JITTER, ROUGH_OF_JITTER = 0.05, 0.1
VIRTUAL = Tolerances(
    Tolerance(0.05 * MILLISECOND),
    Tolerance(share=OF_JITTER),
    Tolerance(share=0.005),
    of_jitter=OF_JITTER,
    exact=True,
    rough_jitter=Tolerance(share=ROUGH_OF_JITTER),
)
HOST = Tolerances(
    Tolerance(0.2 * MILLISECOND, 0.01),
    Tolerance(0.2 * MILLISECOND, OF_JITTER),
    Tolerance(share=0.01),
    of_jitter=OF_JITTER,
    rough_jitter=Tolerance(0.2 * MILLISECOND, ROUGH_OF_JITTER),
)
# The tolerances are never wider. These are also used if no noise is measured, as through a virtual machine
# with netem.
WIDEST = Tolerances(
    Tolerance(MILLISECOND, 0.05),
    Tolerance(0.5 * MILLISECOND, 0.15),
    Tolerance(share=0.05),
    of_jitter=OF_JITTER,
)
RARE = 0.01  # a share below this is judged within half of its value, any other within a quarter
ROUGH, FINE = 0.5, 0.25


def of_share(expected: float) -> float:
    """Returns the largest difference from an expected share with which the verdict is "holds": half of a
    share below 1 %, a quarter of any other.
    """
    return expected * (ROUGH if expected < RARE else FINE)


def settle(requested: ProofSettings, *, kernel: str, virtual: bool, quiet: Noise | None) -> Tolerances:
    """Returns the tolerances of a lab: the topology's, else those for virtual time, for the host's kernel, or
    by the noise of a lab kernel.

    quiet: the noise measured before the proof, without other traffic; None (not measured) gives the widest
    tolerances.
    """
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
        None if requested.jitter else default.rough_jitter,
    )


def _between(quiet: Noise | None) -> Tolerances:
    """Returns the tolerances of a lab kernel in real time: those from the machine's added delay, but at least
    the host's and at most the widest. If the added delay is None, returns the widest.
    """
    if quiet is None:
        return WIDEST
    added = max(abs(quiet.mean_ns), abs(quiet.median_ns))
    return Tolerances(
        _clamped(added, HOST.delay, WIDEST.delay),
        _clamped(quiet.spread_ns, HOST.jitter, WIDEST.jitter),
        HOST.rate,  # the frames of a train themselves show what the machine adds to their spacing
        OF_JITTER,
        rough_jitter=_clamped(quiet.spread_ns, Tolerance(0.2 * MILLISECOND, ROUGH_OF_JITTER), WIDEST.jitter),
    )


def _clamped(amount: float, least: Tolerance, most: Tolerance) -> Tolerance:
    return Tolerance(min(max(amount, least.amount), most.amount), least.share)
