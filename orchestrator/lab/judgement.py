"""One line of proof.json, its verdict, and quantities as short texts."""

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
    """A line of proof.json: one quantity of one direction, with its verdict.

    requested: the topology's value; expected: its effect (expected.py), with which `measured` is compared.
    low, high: the interval of `measured`. tolerance: the largest difference that holds; None if a count
    decides. machine: what the machine itself adds to the quantity, measured during the proof; None if not
    measurable. needs: frames that would decide, over all directions that were judged together (`directions`);
    None if no number of frames would. Times in ns, shares in [0, 1], rates in bit/s.
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
    """Returns the verdict on an interval: "holds" within the tolerance, "fails" outside it, "cannot tell"
    across its edge.
    """
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "cannot tell"


def shown(unit: str, *values: float) -> str:
    """Returns values as text in the unit that fits the largest: `1 ms`; two values: `2.06 to 2.59 ms`."""
    most = max(abs(v) for v in values)
    sizes = _UNITS[unit]
    size, name = next(((s, n) for s, n in sizes if most >= s), sizes[-1])
    return " to ".join(f"{v / size:.3g}" for v in values) + f" {name}"
