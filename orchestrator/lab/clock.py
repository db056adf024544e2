"""The clocks of a lab in Unix ns: real time that never steps, and a simulated one for the fake driver."""

from __future__ import annotations

import time
from typing import Protocol

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
LOOKS = 5  # number of pairs of readings of both clocks; the quickest pair counts


def wall_offset_ns() -> int:
    """Returns Unix time minus CLOCK_MONOTONIC in ns, from the quickest of LOOKS readings of both clocks.

    NTP changes the rate of both clocks alike, so the difference changes only when the time of day is set, a
    leap second is inserted, or the machine is suspended. Linux keeps the difference as one number (tk_core's
    wall_to_monotonic in kernel/time/timekeeping.c).
    """
    looks = []
    for _ in range(LOOKS):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, wall - before))
    return min(looks)[1]


class Clock(Protocol):
    """Returns lab time in Unix ns.

    offset_ns: lab time minus CLOCK_MONOTONIC. jumps: True if a wait takes no real time, because `advance`
    moves the clock.
    """

    offset_ns: int
    jumps: bool

    def now_ns(self) -> int: ...

    def advance(self, ns: int) -> None: ...


class MonotonicClock:
    """Real time: CLOCK_MONOTONIC plus `offset_ns`, which is Unix time minus monotonic time, taken once (by
    the launcher if there is one).
    """

    jumps = False

    def __init__(self, offset_ns: int | None = None) -> None:
        self.offset_ns = wall_offset_ns() if offset_ns is None else offset_ns

    def now_ns(self) -> int:
        return self.offset_ns + time.monotonic_ns()

    def advance(self, ns: int) -> None:
        """Does nothing: while the selector waited, real time has passed."""


class JumpingClock:
    """A clock that advances only while a caller waits, so that labs of the fake driver take milliseconds."""

    jumps = True

    def __init__(self, start_ns: int | None = None) -> None:
        self.offset_ns = 0
        self._now = time.time_ns() if start_ns is None else start_ns

    def now_ns(self) -> int:
        return self._now

    def advance(self, ns: int) -> None:
        self._now += ns
