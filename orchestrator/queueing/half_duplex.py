"""Half duplex: what all ends send goes through one device, and so through one rate and one queue.

An intermediate functional block (drivers/net/ifb.c). Of a link each end's egress is redirected to it before
the end's own queue; when its qdisc lets a packet go, it is sent by the end that it came to. Captures at the
ends see it then, and once. Of a segment it is what comes into each port, before the bridge copies it: a frame
passes once, however many receive it; then the bridge gets it from the port that it came to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from .kind import Entry, Mismatch

HOOK = "clsact"
Way = Literal["egress", "ingress"]
# u32 keeps the filters of both ways of a device together, and shows them by their number (u32_walk).
WAYS: dict[Way, int] = {"egress": 1, "ingress": 3}
# Frames that prove the link which ends at a port are not for its bridge, and so not for the medium.
_PROOF = "protocol 0x88b5 pref 2 u32 match u32 0 0 flowid 1:1"
_REDIRECT = re.compile(r"\(Egress Redirect to device (\S+)\)")
_ALL = "u32 match u32 0 0 action mirred egress redirect dev"


def hook(device: str) -> str:
    """A line for `tc -batch` that a device needs before anything can be redirected there."""
    return f"qdisc add dev {device} {HOOK}\n"


def redirect(device: str, shared: str, way: Way = "egress") -> str:
    """A line that sends what leaves or enters a device through the shared one, by u32 as in `matching`."""
    return f"filter add dev {device} {way} protocol all pref {WAYS[way]} {_ALL} {shared}\n"


def join(ports: Iterable[str], block: int) -> str:
    """Lines that put what enters these ports under the filters of one block."""
    return "".join(f"qdisc add dev {port} ingress_block {block} {HOOK}\n" for port in ports)


def redirect_block(block: int, shared: str) -> str:
    """Lines that send what enters all ports of a block through the device, proofs of links excepted."""
    return (
        f"filter add block {block} {_PROOF}\nfilter add block {block} protocol all pref 3 {_ALL} {shared}\n"
    )


def leave_proof(device: str) -> str:
    """A line that excepts proofs of the link from what enters a device."""
    return f"filter add dev {device} ingress {_PROOF}\n"


def entries(of: Entry, shown: str) -> list[Entry]:
    """Where `tc filter show` of a device's way, or of a block, says that packets go."""
    return [{**of, "redirect": to} for to in _REDIRECT.findall(shown)]


def mismatches(device: str, shared: str, read: Sequence[Entry]) -> list[Mismatch]:
    """Whether all that the device sends goes there."""
    there = _redirected(read, device, "egress")
    return [] if there == [shared] else [("duplex", shared, ", ".join(there) or "nothing")]


def port_mismatches(ports: Iterable[str], shared: str, read: Sequence[Entry]) -> list[Mismatch]:
    """Whether all that enters these ports goes there."""
    whole = {e["block"]: e["redirect"] for e in read if "block" in e}
    blocks = {e["dev"]: e["ingress_block"] for e in read if e.get("kind") == HOOK and "ingress_block" in e}
    found: list[Mismatch] = []
    for port in ports:
        there = _redirected(read, port, "ingress") or [whole.get(blocks.get(port), "nothing")]
        found += [] if there == [shared] else [(f"duplex of {port}", shared, ", ".join(there))]
    return found


def _redirected(read: Sequence[Entry], device: str, way: str) -> list[str]:
    return [e["redirect"] for e in read if e.get("dev") == device and e.get("way") == way]
