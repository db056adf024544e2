"""First in, first out behind a rate that may change under the packets which wait; net/sched/sch_htb.c.

One class of htb, and no token bucket (tbf): tbf fills its bucket at every change, which would let a frame
more pass each time (tbf_change), and netem keeps the times at which packets were to leave. Htb sends a frame
at the rate that it finds and waits until that frame would be over: a change holds from the next frame on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Fifo, Impairment
from . import words
from .discipline import LEAF, QUEUE, Part, Place, differing, entry
from .kind import Entry, Mismatch
from .tbf import RATE_SLACK_BPS, bucket_bytes

CLASS = "10"  # minor number, in hex
SHOWN_DIGITS = 1e-3  # of a rate that tc shows


class FifoRoom:
    """The kind `fifo`."""

    kind = "fifo"
    root = "htb"
    shapes = True

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [
            at.qdisc(QUEUE, f"htb default 0x{CLASS}"), _class(wanted, at.device), _leaf(wanted, at)
        ]  # fmt: skip

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        same = _fifo(before).limit_packets == _fifo(after).limit_packets
        return [_class(after, at.device), *([] if same else [_leaf(after, at)])]

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return ()

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        default = entry(entries, QUEUE).get("options", {}).get("default")
        read, below = entry(entries, f"{QUEUE}{CLASS}"), entry(entries, f"{LEAF:x}:")
        slack = RATE_SLACK_BPS + SHOWN_DIGITS * wanted.rate_bps
        found: list[Mismatch] = []
        if default != f"0x{CLASS}":
            found.append(("queue default", f"0x{CLASS}", default))
        found += differing([
            (f"queue {word}", wanted.rate_bps, 8 * read[word] if word in read else None, slack)
            for word in ("rate", "ceil")
        ])  # fmt: skip
        limit, there = _fifo(wanted).limit_packets, below.get("options", {}).get("limit")
        return found + ([("queue limit", limit, there)] if there != limit else [])

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)


ROOM = FifoRoom()


def _fifo(wanted: Impairment) -> Fifo:
    assert wanted.queue is not None and wanted.queue.fifo is not None
    return wanted.queue.fifo


def _class(wanted: Impairment, device: str) -> str:
    rate, least = words.bits(wanted.rate_bps), _fifo(wanted).least_bytes
    burst = 1 if least else bucket_bytes(wanted.rate_bps, wanted.frame_bytes)
    return (
        f"class replace dev {device} parent {QUEUE} classid {QUEUE}{CLASS} htb rate {rate} ceil {rate} "
        f"burst {burst} cburst {burst} quantum {wanted.frame_bytes}" + (f" mpu {least}" if least else "")
    )


def _leaf(wanted: Impairment, at: Place) -> str:
    return at.below(QUEUE, int(CLASS, 16)).qdisc(f"{LEAF:x}:", f"pfifo limit {_fifo(wanted).limit_packets}")
