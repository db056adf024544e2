"""Implements the queue kind `red`: random early detection, which drops or marks; the kernel's
net/sched/sch_red.c.

Below a token bucket, RED does not notice that its queue is empty: the bucket looks with red_peek, which does
not start the idle time. The mean therefore falls with arriving packets and not with time, and a change of
settings resets it to zero. Below the class whose rate a trace changes, RED notices an empty queue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from contract.plan import Impairment, Red

from . import words
from .discipline import QUEUE, Part, Place, entry
from .kind import Entry, Mismatch

MEAN_PACKET_BYTES = 1000  # what tc-red(8) recommends for the Internet
LEAST_FRAME_BYTES = 14  # no frame is shorter than its Ethernet header


class RedRoom:
    """Sets and reads back the queue kind `red`."""

    kind = "red"
    root = "tbf"
    shapes = False

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        """Returns tc's line for the queue; the mean covers as many packets as tc-red(8) recommends."""
        red = _red(wanted)
        burst = math.ceil((2 * red.min_bytes + red.max_bytes) / (3 * MEAN_PACKET_BYTES)) + 1
        return [
            at.qdisc(
                QUEUE,
                f"red limit {red.limit_bytes} min {red.min_bytes} max {red.max_bytes} "
                f"avpkt {MEAN_PACKET_BYTES} burst {burst} probability {red.probability:.9g} "
                f"bandwidth {words.bits(wanted.rate_bps)}" + (" ecn" if red.ecn else ""),
            )
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns the lines of a change; an empty list if a trace changes only the rate, so that RED keeps
        its mean queue length.
        """
        steered = after.queue is not None and after.queue.steered
        return [] if steered and _red(before) == _red(after) else self.lines(after, at)

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return self.lines(wanted, at)

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        red, read = _red(wanted), entry(entries, QUEUE).get("options", {})
        asked = {
            "min": red.min_bytes, "max": red.max_bytes, "limit": red.limit_bytes, "ecn": red.ecn
        }  # fmt: skip
        return [
            (f"queue {word}", value, read.get(word))
            for word, value in asked.items()
            if (read.get(word) or 0) != value
        ]

    def packets(self, wanted: Impairment) -> int:
        return _red(wanted).limit_bytes // LEAST_FRAME_BYTES + 1

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return 0


ROOM = RedRoom()


def _red(wanted: Impairment) -> Red:
    assert wanted.queue is not None and wanted.queue.red is not None
    return wanted.queue.red
