"""Implements the queue kind `cake`, which shapes, queues fairly and separates tins: tc-cake(8),
net/sched/sch_cake.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Cake, Impairment

from . import words
from .discipline import QUEUE, Part, Place, differing, entry
from .kind import Entry, Mismatch
from .tbf import RATE_TOLERANCE_BPS

TIME_TOLERANCE_US = 2
LEAST_MEMORY_BYTES = 4 << 20
LEAST_PACKET_BYTES = 256  # a struct sk_buff with its data takes more than 500
TINS = {  # from the lowest priority on, as tc-cake(8) names them
    "besteffort": ("all",),
    "diffserv3": ("bulk", "best effort", "voice"),
    "diffserv4": ("bulk", "best effort", "video", "voice"),
    "diffserv8": tuple(f"tin {number}" for number in range(8)),
}


class CakeRoom:
    """Sets and reads back the queue kind `cake`."""

    kind = "cake"
    root = "cake"
    shapes = True

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        """Returns tc's line for the queue. `raw` makes CAKE count Ethernet frames like the other kinds,
        without the overhead of a line.
        """
        cake = _cake(wanted)
        return [
            at.qdisc(
                QUEUE,
                f"cake bandwidth {words.bits(wanted.rate_bps)} {cake.diffserv} {cake.isolation} "
                f"rtt {words.time(cake.rtt_ns)} raw no-split-gso",
            )
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        return self.lines(after, at)

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return tuple(Part(name, QUEUE, tin) for tin, name in enumerate(TINS[_cake(wanted).diffserv], 1))

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        cake, read = _cake(wanted), entry(entries, QUEUE).get("options", {})
        bandwidth = read.get("bandwidth")
        rate = 8 * bandwidth if isinstance(bandwidth, int) else bandwidth  # "unlimited"
        found = differing([
            ("queue rate", wanted.rate_bps, rate, RATE_TOLERANCE_BPS + 1e-5 * wanted.rate_bps),
            ("queue rtt", cake.rtt_ns / 1000, read.get("rtt"), TIME_TOLERANCE_US),
        ])  # fmt: skip
        same = (("isolation", cake.isolation, "flowmode"), ("diffserv", cake.diffserv, "diffserv"))
        return found + [(f"queue {f}", asked, read.get(w)) for f, asked, w in same if read.get(w) != asked]

    def packets(self, wanted: Impairment) -> int:
        """Returns the largest number of packets: CAKE's memory (cake_reconfigure) divided by the least size
        that it counts for a packet (skb->truesize).
        """
        of_rate = 4 * wanted.rate_bps * _cake(wanted).rtt_ns // (8 * 10**9)
        return max(LEAST_MEMORY_BYTES, of_rate) // LEAST_PACKET_BYTES + 1

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return wanted.frame_bytes


ROOM = CakeRoom()


def _cake(wanted: Impairment) -> Cake:
    assert wanted.queue is not None and wanted.queue.cake is not None
    return wanted.queue.cake
