"""Defines traces: the impairment of one direction of a link over time.

Imports the standard library only: the lab process reads it inside the lab's kernel.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """A state that holds from `at_ns` after the trace's start; None keeps the link's own value."""

    at_ns: int
    rate_bps: int | None = None  # 0: nothing is sent
    delay_ns: int | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """`states` rise in time, the first is at 0; with `repeat` the first comes again at `length_ns`.

    Without it the last stays.
    """

    file: str  # as the topology names it
    sha256: str  # of the file
    states: tuple[State, ...]
    length_ns: int
    repeat: bool
    bin_ns: int = 0  # of a packet-delivery trace: over how long its opportunities were counted
