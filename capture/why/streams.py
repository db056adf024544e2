"""Follows one direction of a TCP connection in the frames of a capture point. Finds the segments that carried
a byte, and the time from which all bytes before it were recorded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import Any

TURN = 1 << 32  # sequence numbers have 32 bits


class Stream:
    """The segments with payload of one direction of a connection, by positions that do not wrap."""

    def __init__(self) -> None:
        self._last: int | None = None  # the last position, from which the next one is computed
        self._segments: list[tuple[int, int, int, Any]] = []  # begin, time, length, and data of the caller
        self._longest = 0
        self._sorted = True
        self._complete: int | None = None  # all bytes before this position were recorded
        self._waiting: list[tuple[int, int]] = []  # a heap with begin and end of segments beyond a gap
        self._ends: list[int] = []  # positions up to which all bytes were recorded ...
        self._times: list[int] = []  # ... and the times (ns) since when

    def unwrapped(self, number: int) -> int:
        """Returns the position of a sequence number: the nearest to the position of the last segment."""
        if self._last is None:
            self._last = number + TURN
        else:
            ahead = (number - self._last) % TURN
            self._last += ahead - TURN if ahead >= TURN // 2 else ahead
        return self._last

    def opened(self, begin: int) -> None:
        """Sets the position of the first byte from the SYN of the connection."""
        if self._complete is None:
            self._complete = begin

    def add(self, t_ns: int, begin: int, length: int, what: Any) -> None:
        """Adds a segment; segments must be added in the order of time."""
        self._segments.append((begin, t_ns, length, what))
        self._longest, self._sorted = max(self._longest, length), False
        self._complete = begin if self._complete is None else self._complete
        if begin > self._complete:
            heappush(self._waiting, (begin, begin + length))
            return
        if begin + length <= self._complete:
            return
        self._complete = begin + length
        while self._waiting and self._waiting[0][0] <= self._complete:
            self._complete = max(self._complete, heappop(self._waiting)[1])
        self._ends.append(self._complete)
        self._times.append(t_ns)

    def with_byte(self, position: int) -> list[Any]:
        """Returns, in order of time, the caller's data of the segments that carried the byte at a
        position.
        """
        if not self._sorted:
            self._segments.sort(key=lambda one: (one[0], one[1]))
            self._sorted = True
        first = bisect_left(self._segments, position - self._longest, key=lambda one: one[0])
        last = bisect_right(self._segments, position, key=lambda one: one[0])
        near = [one for one in self._segments[first:last] if one[0] <= position < one[0] + one[2]]
        return [what for *_, what in sorted(near, key=lambda one: one[1])]

    def complete_ns(self, end: int) -> int | None:
        """Returns the time (ns) from which all bytes before `end` were recorded; None if one is missing."""
        place = bisect_left(self._ends, end)
        return self._times[place] if place < len(self._ends) else None
