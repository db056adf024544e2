"""Defines how far a proof's measured quantity may differ from the expected one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The larger of an amount (ns, bit/s) and a share of what is expected."""

    amount: float = 0.0
    share: float = 0.0

    def of(self, expected: float) -> float:
        return max(self.amount, self.share * abs(expected))


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """The proof's settings in the topology file; None is the default of the lab's kernel."""

    delay: Tolerance | None = None
    jitter: Tolerance | None = None
    rate: Tolerance | None = None
    longest_ns: int = 2_000_000_000  # length of the first train, for delay, jitter and loss
    at_most_ns: int | None = None  # limit for all trains of a direction; None: the kernel's default
