"""Estimates how far the clocks of guests or other hosts differ from the lab's, from round trips, and converts
times between them.

The offset (other clock - lab's clock) comes from the fastest of several round trips; its error is half of
that trip.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from dataclasses import dataclass, field
from typing import Any

from orchestrator.lab.clock import Clock
from orchestrator.lab.errors import LabError
from orchestrator.lab.operations import ReadClock
from orchestrator.lab.vm.dialogue import Dialogue, ask

ROUNDS = 8
LATEST_NS = 1 << 63  # the latest time of a kernel's clock (ktime_t)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The offset of a guest's clock and its error at the time `lab_ns`; all in ns."""

    lab_ns: int  # when
    offset_ns: int
    error_ns: int

    @property
    def guest_ns(self) -> int:
        return self.lab_ns + self.offset_ns


@dataclass
class GuestClock:
    """The estimates of one guest's clock, in the order of time."""

    estimates: list[Estimate] = field(default_factory=list)

    def to_guest(self, lab_ns: int) -> int:
        """Converts a time of the lab (ns) to the guest's clock, by the last estimate; unchanged without an
        estimate.
        """
        return lab_ns + (self.estimates[-1].offset_ns if self.estimates else 0)

    def to_lab(self, guest_ns: int) -> int:
        """Converts a time of the guest (ns) to the lab's clock: linear between two estimates, constant
        outside, unchanged without an estimate.
        """
        known = self.estimates
        if not known:
            return guest_ns
        place = bisect(known, guest_ns, key=lambda e: e.guest_ns)
        if place in (0, len(known)):
            return guest_ns - known[min(place, len(known) - 1)].offset_ns
        a, b = known[place - 1], known[place]
        share = (guest_ns - a.guest_ns) / max(1, b.guest_ns - a.guest_ns)
        return guest_ns - round(a.offset_ns + share * (b.offset_ns - a.offset_ns))

    def forget(self) -> None:
        """Forgets all estimates: a machine that was restarted or reverted to a snapshot has a new clock."""
        self.estimates.clear()

    def facts(self) -> dict[str, Any]:
        """Returns the clock's figures for the manifest: first offset, error, drift, number of estimates;
        needs at least one estimate.

        error_ns is the largest half round trip, plus the largest distance of an estimate from the line
        between its neighbours.
        """
        first, last = self.estimates[0], self.estimates[-1]
        passed = last.lab_ns - first.lab_ns
        drift = (last.offset_ns - first.offset_ns) / passed * 1e6 if passed else 0.0
        error = max(e.error_ns for e in self.estimates) + self._bend_ns()
        return {
            "offset_ns": first.offset_ns, "error_ns": error, "drift_ppm": round(drift, 3),
            "estimates": len(self.estimates),
        }  # fmt: skip

    def _bend_ns(self) -> int:
        """Returns the largest distance (ns) of an estimate's offset from the line between its neighbours."""
        bends = [0]
        for a, b, c in zip(self.estimates, self.estimates[1:], self.estimates[2:], strict=False):
            share = (b.lab_ns - a.lab_ns) / max(1, c.lab_ns - a.lab_ns)
            bends.append(abs(round(b.offset_ns - a.offset_ns - share * (c.offset_ns - a.offset_ns))))
        return max(bends)


def estimate(clock: Clock, rounds: int = ROUNDS) -> Dialogue[Estimate]:
    """Measures `rounds` round trips to the agent; the dialogue's result is the estimate from the fastest one.
    Raises LabError for an answer that is no time.
    """
    trips: list[tuple[int, Estimate]] = []
    for _ in itertools.repeat(None, rounds):
        before = clock.now_ns()
        answer = yield from ask(ReadClock())
        after = clock.now_ns()
        middle, half = (before + after) // 2, (after - before) // 2
        if not (isinstance(told := answer["now_ns"], int) and 0 <= told < LATEST_NS):
            raise LabError(f"its clock reads {str(told)[:40]}, which is no time in nanoseconds")
        trips.append((half, Estimate(middle, told - middle, half)))
    return min(trips, key=lambda trip: trip[0])[1]
