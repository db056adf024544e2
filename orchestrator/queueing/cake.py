"""Implements the queue kind `cake`, which limits the rate, queues fairly and separates traffic classes
(tins): tc-cake(8), net/sched/sch_cake.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from . import words
from .discipline import QUEUE, Fault, Part, Place, QueueKind, differing, entry, given
from .kind import Entry, Mismatch
from .settings import choice, discipline, duration, settings_of
from .tbf import RATE_TOLERANCE_BPS

TIME_TOLERANCE_US = 2
LEAST_MEMORY_BYTES = 4 << 20
LEAST_PACKET_BYTES = 256  # bytes; a struct sk_buff with its data takes more than 500
ISOLATIONS = (
    "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
)  # fmt: skip
TINS = {  # names of the tins from the lowest priority on (tc-cake(8))
    "besteffort": ("all",),
    "diffserv3": ("bulk", "best effort", "voice"),
    "diffserv4": ("bulk", "best effort", "video", "voice"),
    "diffserv8": tuple(f"tin {number}" for number in range(8)),
}


@dataclass(frozen=True, slots=True)
class Cake:
    """A shaper, fair queueing and priorities in one qdisc (tc-cake)."""

    isolation: str = choice("isolation", ISOLATIONS, "triple-isolate", "Unit that gets a fair share.")
    diffserv: str = choice(
        "diffserv", tuple(TINS), "diffserv3", "Set of tins, chosen for a packet by its DSCP."
    )
    rtt_ns: int = duration("rtt", "100 ms", "Round-trip time for which CAKE is tuned.")


class CakeKind(QueueKind):
    """Sets and reads back the queue kind `cake`."""

    kind = "cake"
    meaning = "CAKE; `{}` for its defaults."
    settings = Cake
    root = qdisc = trial = "cake"
    shapes = True
    module, config = "sch_cake", "NET_SCH_CAKE"
    # CAKE counts a short frame as at most 256 bytes (iproute2's tc/q_cake.c), so more than one short frame
    # would pass.
    outages = False
    examples = (
        discipline("cake", Cake("dual-dsthost", "diffserv4", 50 * 10**6)),
        discipline("cake", Cake("flows", "besteffort", 20 * 10**6)),
    )

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        if _cake(wanted).rtt_ns < 1000:
            yield Fault(("rtt",), None, "is below 1 us", "write the longest usual round trip")

    def serves_dscp(self, wanted: Impairment) -> bool:
        return _cake(wanted).diffserv != "besteffort"

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

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return tuple(Part(name, QUEUE, tin) for tin, name in enumerate(TINS[_cake(wanted).diffserv], 1))

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        cake, read = _cake(wanted), entry(entries, QUEUE).get("options", {})
        bandwidth = read.get("bandwidth")
        rate = 8 * bandwidth if isinstance(bandwidth, int) else bandwidth  # tc also prints "unlimited"
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

    def at_once_bytes(self, wanted: Impairment) -> int:
        return wanted.frame_bytes

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        return {
            "bandwidth": round(words.scaled(named["bandwidth"], words.RATES)) // 8, "diffserv": arguments[2],
            "flowmode": arguments[3], "rtt": round(words.scaled(named["rtt"], words.TIMES) * 1e6),
        }  # fmt: skip


QUEUE_KIND = CakeKind()


def _cake(wanted: Impairment) -> Cake:
    return settings_of(Cake, wanted)
