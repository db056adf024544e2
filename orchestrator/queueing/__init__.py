"""Kinds of queue that carry a direction's impairment: one room each, and which of them is meant.

Standard library only: the lab process reads it inside the lab's kernel.
"""

from __future__ import annotations

from ..model import Impairment
from . import netem, tbf
from .kind import Entry, Mismatch, Queue

KINDS: dict[str, Queue] = {queue.kind: queue for queue in (netem.QUEUE, tbf.QUEUE)}


def queue_of(wanted: Impairment) -> Queue | None:
    """The queue that an impairment becomes; None for a plain wire.

    A rate alone needs no netem: a token bucket has it, which kernels without netem have too.
    """
    if not wanted.present:
        return None
    alone = wanted == Impairment(
        rate_bps=wanted.rate_bps, limit_packets=wanted.limit_packets, frame_bytes=wanted.frame_bytes
    )
    return tbf.QUEUE if alone else netem.QUEUE


def set_text(device: str, wanted: Impairment) -> str:
    """Lines for `tc -batch` that set an impairment on a device that has none."""
    return change_text(device, Impairment(), wanted)


def change_text(device: str, before: Impairment, after: Impairment) -> str:
    """Lines for `tc -batch` that turn `before` into `after`; packets in the queue survive where the kernel
    allows: a queue of another kind, or one that cannot take something back, is made anew.
    """
    old, new = queue_of(before), queue_of(after)
    gone = f"qdisc del dev {device} root\n" if old is not None else ""
    if new is None:
        return gone
    if new is not old or not new.takes(before, after):
        return gone + _lines(new, device, Impairment(), after)
    return _lines(new, device, before, after)


def _lines(queue: Queue, device: str, before: Impairment, after: Impairment) -> str:
    return "".join(f"{line}\n" for line in queue.lines(device, before, after))


def found(entries: list[Entry], device: str, like: Impairment) -> Impairment:
    """What `tc -j qdisc` says is set on a device; `like`: for what the kernel does not tell."""
    for entry in entries:
        if entry.get("dev") == device and entry.get("root") and entry.get("kind") in KINDS:
            return KINDS[entry["kind"]].read([e for e in entries if e.get("dev") == device], like)
    return Impairment()


def mismatches(asked: Impairment, entries: list[Entry], device: str) -> list[Mismatch]:
    """(field, asked, read) wherever a device is not as asked; field "": its queue is of another kind."""
    mine = [e for e in entries if e.get("dev") == device]
    queue = queue_of(asked)
    roots = [str(e.get("kind")) for e in mine if e.get("root")]
    ours = [kind for kind in roots if kind in KINDS]
    if queue is None:
        return [("", f"no {kind}", kind) for kind in ours]
    if queue.kind not in roots:
        return [("", queue.kind, ", ".join(roots) or "nothing")]
    return queue.mismatches(asked, mine)
