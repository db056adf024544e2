"""Defines a line of proof.json: one quantity of one direction of a link, with its verdict.

Imports the standard library only: the lab process imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import retired, verdict
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class Proven:
    """One quantity of one direction, with its verdict.

    requested: the topology's value; expected: its effect, with which `measured` is compared. low, high: the
    interval of `measured`. tolerance: the largest difference that holds; None if a count decides. machine:
    what the machine itself adds to the quantity, measured during the proof; None if not measurable. needs:
    frames that would decide, over all directions that were judged together (`directions`, 0 in files of
    earlier rules); None if no number of frames would. Times in ns, shares in [0, 1], rates in bit/s.
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
    verdict: Verdict
    reason: str
    tolerance: float | None = None
    machine: float | None = None
    needs: int | None = None
    directions: int = 1

    @property
    def name(self) -> str:
        """Link, direction and quantity, as verdicts.json names the check."""
        return f"{self.link} {self.direction} {self.quantity}"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Proven:
        """Returns the line that the file has, also of an earlier version; what is absent or of another type
        is None, 0 or empty.
        """
        found = retired.named("proof.json", row)

        def text(key: str) -> str:
            return str(found.get(key) or "")

        def number(key: str) -> float | None:
            value = found.get(key)
            return value if isinstance(value, int | float) else None

        def count(key: str) -> int | None:
            value = found.get(key)
            return value if isinstance(value, int) else None

        return cls(
            text("link"), text("direction"), text("quantity"),
            number("requested") or 0.0, number("expected") or 0.0,
            number("measured"), number("low"), number("high"),
            text("unit"), count("n") or 0, verdict.word(found.get("verdict")), text("reason"),
            number("tolerance"), number("machine"), count("needs"), count("directions") or 0,
        )  # fmt: skip
