"""One line of proof.json, and its quantities in words that are read at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ProofResult = Literal["holds", "fails", "cannot tell"]
# Sizes from which a unit is written in, largest first.
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "share": ((0.01, "%"),),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """requested: the topology's value; expected: its effect (expected.py), against which measured is judged.

    tolerance: the largest difference that holds; None where a count decides. machine: what the machine itself
    adds to the quantity, measured during the proof; None if not measurable. needs: frames that would decide,
    over all directions that were judged together (`directions`); None if no number of frames would. Times in
    ns, shares in [0, 1], rates in bit/s.
    """

    link: str
    direction: str
    quantity: str
    requested: float
    expected: float
    measured: float | None
    low: float | None
    high: float | None
    unit: str
    n: int
    verdict: ProofResult
    reason: str
    tolerance: float | None = None
    machine: float | None = None
    needs: int | None = None
    directions: int = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of one series of probe frames."""

    sent: int
    received: int  # distinct frames
    duplicates: int
    corrupted: int
    delays_ns: Sequence[int]
    arrivals_ns: Sequence[int]


def verdict(low: float, high: float, least: float, most: float) -> ProofResult:
    """Verdict on an interval against a tolerance: inside it, outside it, or too wide to decide."""
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "cannot tell"


def shown(unit: str, *values: float) -> str:
    """`1 ms`; of two values `2.06 to 2.59 ms`: both in the unit that fits the larger."""
    most = max(abs(v) for v in values)
    sizes = _UNITS[unit]
    size, name = next(((s, n) for s, n in sizes if most >= s), sizes[-1])
    return " to ".join(f"{v / size:.3g}" for v in values) + f" {name}"
