"""How far a proof's measured quantity may be from the one expected."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slack:
    """The larger of an amount (ns, bit/s) and a share of what is expected."""

    amount: float = 0.0
    share: float = 0.0

    def of(self, expected: float) -> float:
        return max(self.amount, self.share * abs(expected))


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """What a file asks of its proof; None is the default of the kernel that the lab runs in."""

    delay: Slack | None = None
    jitter: Slack | None = None
    rate: Slack | None = None
    longest_ns: int = 2_000_000_000  # of the first train of frames that tells delay, jitter and loss
    at_most_ns: int | None = None  # of all trains of a direction; None: as the kernel that the lab runs in
