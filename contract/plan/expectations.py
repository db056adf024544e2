"""Defines expectations: conditions on a run that the file states and that reports judge.

Imports the standard library only. Numbers are in the unit of the metric in summary.json, times nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Subject = Literal["metric", "delivered", "log", "event"]
Mode = Literal["value", "always", "eventually", "never"]
# Values of `delivered`: whether no message is lost, and whether none is delivered twice.
DELIVERED: dict[str, tuple[bool, bool]] = {
    "at-most-once": (False, True),
    "at-least-once": (True, False),
    "exactly-once": (True, True),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a value; None is no bound."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def hold(self, value: float) -> bool:
        """Returns True if the value is in the range."""
        return not self.under(value) and not self.over(value)

    def under(self, value: float) -> bool:
        """Returns True if the value is below the range's lower bound."""
        return (self.above is not None and value <= self.above) or (
            self.at_least is not None and value < self.at_least
        )

    def over(self, value: float) -> bool:
        """Returns True if the value is above the range's upper bound."""
        return (self.below is not None and value >= self.below) or (
            self.at_most is not None and value > self.at_most
        )


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation. `text` states it in words and is its name in verdicts.json."""

    text: str
    subject: Subject
    name: str  # metric; word of DELIVERED; node whose logs are read; label or step of a session
    of: dict[str, str] = field(default_factory=dict)  # columns of summary.json that must have these values
    mode: Mode = "value"
    bounds: Bounds = field(default_factory=Bounds)
    unit: str = ""  # unit of the bounds
    pattern: str = ""  # regular expression that is searched in a log
    within_ns: int | None = None  # eventually: longest time until the condition is met
    every_ns: int = 1_000_000_000  # always, eventually, never: length of the intervals of a series
    during: str = ""  # label of the timeline: from that event to its end, or to the end of the hold
    after: str = ""  # label of the timeline: from that event to the end of the hold
