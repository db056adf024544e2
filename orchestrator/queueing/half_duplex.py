"""Half duplex: what either end sends goes through one device of both, and so through one rate and one queue.

An intermediate functional block (drivers/net/ifb.c): each end's egress is redirected to it before the end's
own queue; when its qdisc lets a packet go, it is sent by the end that it came to. Captures at the ends see it
then, and once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .kind import Entry, Mismatch

HOOK = "clsact"
_REDIRECT = re.compile(r"\(Egress Redirect to device (\S+)\)")


def text(device: str, shared: str) -> str:
    """Lines for `tc -batch` that send a device's egress through the shared one, by u32 as in `matching`."""
    return (
        f"qdisc add dev {device} {HOOK}\n"
        f"filter add dev {device} egress protocol all pref 1 u32 match u32 0 0 "
        f"action mirred egress redirect dev {shared}\n"
    )


def entries(device: str, shown: str) -> list[Entry]:
    """Where `tc filter show dev DEVICE egress` says that packets go."""
    return [{"dev": device, "redirect": to} for to in _REDIRECT.findall(shown)]


def mismatches(device: str, shared: str, read: Sequence[Entry]) -> list[Mismatch]:
    """Whether all that the device sends goes there."""
    there = [e["redirect"] for e in read if e.get("dev") == device and "redirect" in e]
    return [] if there == [shared] else [("duplex", shared, ", ".join(there) or "nothing")]
