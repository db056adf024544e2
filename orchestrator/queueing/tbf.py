"""Implements the queue kind `tbf`, a rate with backpressure: a token bucket over a queue of packets;
net/sched/sch_tbf.c.

The bucket holds one full frame, or the bytes that the rate sends in 250 us if these are more. So the kernel's
timer may be 250 us late without lowering the rate. After a pause, a full bucket of bytes passes at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Impairment

from . import words
from .kind import Entry, Mismatch

LATE_S = 250e-6
ROUNDING_BYTES = 64  # tc counts the bucket in ticks of 64 ns
RATE_TOLERANCE_BPS = 8  # the kernel keeps bytes per second


class Tbf:
    """Sets and reads back the queue kind `tbf`."""

    kind = "tbf"

    def takes(self, before: Impairment, after: Impairment) -> bool:
        return True

    def lines(self, device: str, before: Impairment, after: Impairment) -> list[str]:
        """Returns the lines of the bucket and of the packet queue below. tc requires a limit in bytes, which
        the queue's limit in packets replaces.
        """
        rate, burst = words.bits(after.rate_bps), self.at_once_bytes(after)
        limit = max(burst, min(after.limit_packets * after.frame_bytes, 2**31 - 1))
        return [
            f"qdisc replace dev {device} root handle 1: tbf rate {rate} burst {burst} limit {limit}",
            f"qdisc replace dev {device} parent 1:1 handle 2: pfifo limit {after.limit_packets}",
        ]

    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment:
        root = next(e for e in entries if e.get("root"))
        below = next((e for e in entries if e.get("parent") == "1:1"), {})
        return Impairment(
            rate_bps=int(root.get("options", {}).get("rate", 0)) * 8,
            limit_packets=int(below.get("options", {}).get("limit", 0)),
            frame_bytes=like.frame_bytes,
            backpressure=like.backpressure,
        )

    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        read = self.read(entries, asked)
        found: list[Mismatch] = []
        if abs(read.rate_bps - asked.rate_bps) > RATE_TOLERANCE_BPS + 1e-5 * asked.rate_bps:
            found.append(("rate_bps", asked.rate_bps, read.rate_bps))
        if read.limit_packets != asked.limit_packets:
            found.append(("limit_packets", asked.limit_packets, read.limit_packets))
        return found

    def sending_ns(self, wanted: Impairment, frame_bytes: int) -> int:
        return 0  # the bucket is full when a lone frame arrives

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps


def bucket_bytes(rate_bps: int, frame_bytes: int) -> int:
    """Returns the size in bytes of the token bucket: the bytes that the rate sends in 250 us, but at least a
    frame and ROUNDING_BYTES.
    """
    return max(frame_bytes + ROUNDING_BYTES, round(rate_bps / 8 * LATE_S))


QUEUE = Tbf()
