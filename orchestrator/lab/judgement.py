"""Defines the results of probe frames, the verdict on an interval, and quantities and remedies as short
texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

RATE = "rate"  # the only quantity that trains of frames show and spaced frames do not
ProofResult = Literal["holds", "fails", "cannot tell"]
# Sizes (ns, bit/s) from which each unit is used in text, largest first.
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "share": ((0.01, "%"),),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of one series of probe frames."""

    sent: int
    received: int  # distinct frames that arrived
    duplicates: int
    corrupted: int
    delays_ns: Sequence[int]
    arrivals_ns: Sequence[int]


def verdict(low: float, high: float, least: float, most: float) -> ProofResult:
    """Returns the verdict on an interval: "holds" if it is within the tolerance, "fails" if it is outside,
    "cannot tell" if it crosses the tolerance's edge.
    """
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "cannot tell"


def shown(unit: str, *values: float) -> str:
    """Returns values as text in the unit that fits the largest one: `1 ms`, or for two values `2.06 to 2.59
    ms`.
    """
    most = max(abs(v) for v in values)
    sizes = _UNITS[unit]
    size, name = next(((s, n) for s, n in sizes if most >= s), sizes[-1])
    return " to ".join(f"{v / size:.3g}" for v in values) + f" {name}"


def decides(whole_ns: int, most_ns: int) -> str:
    """Returns the remedy for an undecided quantity that would take `whole_ns` to decide, while `most_ns` are
    allowed.
    """
    if whole_ns <= most_ns:  # the proof has made all attempts that the time allows
        return "it lies near the edge of the tolerance: another seed may decide"
    return f"a longer proof decides: `proof: {{at_most: {math.ceil(whole_ns / 1e9)} s}}`"


def loud_reason(unit: str, tolerance: float, adds: str) -> str:
    """Returns the reason for a verdict `cannot tell` if the machine itself adds more (`adds`, in words) than
    the tolerance.
    """
    return (
        f"this machine adds {adds}, more than the tolerance of {shown(unit, tolerance)}; "
        "prove again when it is idle, use `--time virtual`, or allow more: `proof:`"
    )


def wanted_reason(unit: str, requested: float, expects: float) -> str:
    """Returns the requested value as text, and the expected one if it differs."""
    text, makes = f"requested {shown(unit, requested)}", shown(unit, expects)
    return text if makes == shown(unit, requested) else f"{text}, which makes {makes}"
