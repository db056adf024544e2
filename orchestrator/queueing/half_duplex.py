"""Implements half duplex with tc: all ends send through one shared device, and so share one rate and one
queue.

The shared device is an intermediate functional block (drivers/net/ifb.c). For a link, the egress of each end
is redirected to the shared device before the end's own queue; after the shared qdisc the packet leaves by the
end that it came from. A capture at an end records each packet once, at that time. For a segment, the frames
that enter each port are redirected before the bridge copies them, so a frame passes once, however many nodes
receive it; then the bridge receives the frame from the port that it entered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from .kind import Entry, Mismatch

HOOK = "clsact"
Way = Literal["egress", "ingress"]
# u32 keeps the filters of both directions of a device together, and lists them by their number (u32_walk).
WAYS: dict[Way, int] = {"egress": 1, "ingress": 3}
# Frames of a link proof are left out of the redirection: they end at the port of their link and enter neither
# bridge nor medium.
_PROOF = "protocol 0x88b5 pref 2 u32 match u32 0 0 flowid 1:1"
_REDIRECT = re.compile(r"\(Egress Redirect to device (\S+)\)")
_ALL = "u32 match u32 0 0 action mirred egress redirect dev"


def hook(device: str) -> str:
    """Returns a line for `tc -batch` that adds to a device the qdisc `clsact`, which redirections need."""
    return f"qdisc add dev {device} {HOOK}\n"


def redirect(device: str, shared: str, way: Way = "egress") -> str:
    """Returns a line that redirects all packets that leave (`egress`) or enter (`ingress`) a device to the
    shared device.
    """
    return f"filter add dev {device} {way} protocol all pref {WAYS[way]} {_ALL} {shared}\n"


def join(ports: Iterable[str], block: int) -> str:
    """Returns lines that add to each port the qdisc `clsact`, and so apply the filters of a block to the
    frames that enter the port.
    """
    return "".join(f"qdisc add dev {port} ingress_block {block} {HOOK}\n" for port in ports)


def redirect_block(block: int, shared: str) -> str:
    """Returns lines that redirect the frames entering any port of a block to the shared device, except
    link-proof frames.
    """
    return (
        f"filter add block {block} {_PROOF}\nfilter add block {block} protocol all pref 3 {_ALL} {shared}\n"
    )


def leave_proof(device: str) -> str:
    """Returns a line that excludes link-proof frames entering a device from the redirection."""
    return f"filter add dev {device} ingress {_PROOF}\n"


def entries(of: Entry, shown: str) -> list[Entry]:
    """Returns one entry for each redirection in the output of `tc filter show`: the keys of `of`, and the
    target as `redirect`.
    """
    return [{**of, "redirect": to} for to in _REDIRECT.findall(shown)]


def mismatches(device: str, shared: str, read: Sequence[Entry]) -> list[Mismatch]:
    """Returns a mismatch unless the device's egress has exactly one redirection, to `shared`."""
    there = _redirected(read, device, "egress")
    return [] if there == [shared] else [("duplex", shared, ", ".join(there) or "nothing")]


def port_mismatches(ports: Iterable[str], shared: str, read: Sequence[Entry]) -> list[Mismatch]:
    """Returns a mismatch for each port whose incoming frames are not redirected to `shared`, either by a
    filter of the port or by one of its block.
    """
    whole = {e["block"]: e["redirect"] for e in read if "block" in e}
    blocks = {e["dev"]: e["ingress_block"] for e in read if e.get("kind") == HOOK and "ingress_block" in e}
    found: list[Mismatch] = []
    for port in ports:
        there = _redirected(read, port, "ingress") or [whole.get(blocks.get(port), "nothing")]
        found += [] if there == [shared] else [(f"duplex of {port}", shared, ", ".join(there))]
    return found


def _redirected(read: Sequence[Entry], device: str, way: str) -> list[str]:
    return [e["redirect"] for e in read if e.get("dev") == device and e.get("way") == way]
