"""The lab's clock: Unix time at the start plus CLOCK_MONOTONIC since, so that it never steps."""

from __future__ import annotations

import time
from typing import Protocol

SECOND = 1_000_000_000
MILLISECOND = 1_000_000


class Clock(Protocol):
    """Lab time in ns (Unix), and whether a wait costs real time."""

    offset_ns: int
    jumps: bool

    def now_ns(self) -> int: ...

    def advance(self, ns: int) -> None: ...


class MonotonicClock:
    """Real time: `offset_ns` is Unix minus monotonic, taken once (the launcher's, where there is one)."""

    jumps = False

    def __init__(self, offset_ns: int | None = None) -> None:
        self.offset_ns = time.time_ns() - time.monotonic_ns() if offset_ns is None else offset_ns

    def now_ns(self) -> int:
        return self.offset_ns + time.monotonic_ns()

    def advance(self, ns: int) -> None:
        """Waiting is done by the selector; nothing to add."""


class JumpingClock:
    """A clock that advances only while a caller waits: for the fake driver, whose labs take milliseconds."""

    jumps = True

    def __init__(self, start_ns: int | None = None) -> None:
        self.offset_ns = 0
        self._now = time.time_ns() if start_ns is None else start_ns

    def now_ns(self) -> int:
        return self._now

    def advance(self, ns: int) -> None:
        self._now += ns
