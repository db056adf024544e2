"""Defines the parts of a monitor: the value that it measured, its threshold, and the sentence on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["reached", "below", "cannot tell"]
NAMED = 3  # most subjects that a sentence names


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one monitor for a run, as the manifest stores it under `monitors`.

    value: None if the monitor cannot tell. text: the sentence on the page; if the monitor cannot tell, the
    reason.
    """

    name: str
    state: State
    value: float | None
    threshold: float
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Monitor:
    """A monitor's name, and the least value in `unit` that explains a figure.

    With `role`, only runs with software of that role have the monitor.
    """

    name: str
    threshold: float
    unit: str
    role: str = ""

    def read(self, value: float, reached: str, below: str) -> Reading:
        """Returns a reading with the sentence that fits the value: `reached` or `below` the threshold."""
        over = value >= self.threshold
        state: State = "reached" if over else "below"
        return Reading(self.name, state, value, self.threshold, self.unit, reached if over else below)

    def untold(self, why: str) -> Reading:
        """Returns the reading of a monitor that cannot tell, with the reason."""
        return Reading(self.name, "cannot tell", None, self.threshold, self.unit, why)


def listed(sentences: Sequence[str]) -> str:
    """Joins sentences on the first NAMED subjects, and counts the others."""
    rest = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
    return f"{'; '.join(sentences[:NAMED])}{rest}"
