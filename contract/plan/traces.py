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
    """`states` in order of time, the first at 0; with `repeat` the first state returns at `length_ns`.

    Without `repeat` the last state holds from then on.
    """

    file: str  # the name in the topology
    sha256: str  # SHA-256 of the file
    states: tuple[State, ...]
    length_ns: int
    repeat: bool
    bin_ns: int = 0  # interval over which a packet-delivery trace's opportunities were counted
