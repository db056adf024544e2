"""Limits a rate that may change while packets wait, with one class of HTB; the kernel's net/sched/sch_htb.c.

A token bucket (tbf) fills at every change of the rate (tbf_change) and so lets one more frame pass each time;
netem fixes the departure times of waiting packets. HTB sends a frame at the current rate and waits for the
time that this frame takes, so a change applies from the next frame on.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Impairment

from . import words
from .discipline import Place, differing, entry
from .kind import Entry, Mismatch
from .tbf import RATE_TOLERANCE_BPS, bucket_bytes

KIND = "htb"
CLASS = "10"  # minor number, in hex
SHOWN_DIGITS = 1e-3  # relative rounding of the rates that tc shows


def qdisc(at: Place, handle: str) -> str:
    """Returns a line that creates the shaper on a place without a qdisc; a line of `rate` must follow."""
    return at.qdisc(handle, f"{KIND} default 0x{CLASS}")


def rate(device: str, handle: str, wanted: Impairment) -> str:
    """Returns a line that sets or changes the shaper's rate. With the queue's `least_bytes`, each frame
    counts as at least this many bytes, and no frame passes above the rate.
    """
    assert wanted.queue is not None
    bits, least = words.bits(wanted.rate_bps), wanted.queue.least_bytes
    burst = 1 if least else bucket_bytes(wanted.rate_bps, wanted.frame_bytes)
    return (
        f"class replace dev {device} parent {handle} classid {handle}{CLASS} htb rate {bits} ceil {bits} "
        f"burst {burst} cburst {burst} quantum {wanted.frame_bytes}" + (f" mpu {least}" if least else "")
    )


def below(at: Place, handle: str) -> Place:
    """Returns the place of the queue below the shaper."""
    return at.below(handle, int(CLASS, 16))


def mismatches(handle: str, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
    """Returns the mismatches between the shaper's class and the request."""
    default = entry(entries, handle).get("options", {}).get("default")
    read = entry(entries, f"{handle}{CLASS}")
    tolerance = RATE_TOLERANCE_BPS + SHOWN_DIGITS * wanted.rate_bps
    wrong = [("queue default", f"0x{CLASS}", default)] if default != f"0x{CLASS}" else list[Mismatch]()
    return wrong + differing([
        (f"queue {word}", wanted.rate_bps, 8 * read[word] if word in read else None, tolerance)
        for word in ("rate", "ceil")
    ])  # fmt: skip
