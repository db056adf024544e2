"""Translates a direction's impairment to tc commands and compares it with the kernel's read-back, by kind of
queue.

Uses the standard library only, since the lab process loads it inside the lab's kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from contract.plan import Band, Discipline, Impairment
from contract.plugins import Registry

from . import cake, cbs, codel, fifo, fq, fq_codel, fq_pie, htb, netem, prio, red, settings, sfq, tbf
from .discipline import QUEUE, RATE, Part, QueueKind
from .kind import Entry, Mismatch, Queue
from .stack import Stack

KINDS: dict[str, Queue] = {queue.kind: queue for queue in (netem.QUEUE, tbf.QUEUE)}
_OWN: tuple[QueueKind, ...] = (
    prio.QUEUE_KIND,
    htb.QUEUE_KIND,
    red.QUEUE_KIND,
    fq_codel.QUEUE_KIND,
    cake.QUEUE_KIND,
    fifo.QUEUE_KIND,
    codel.QUEUE_KIND,
    sfq.QUEUE_KIND,
    fq.QUEUE_KIND,
    fq_pie.QUEUE_KIND,
    cbs.QUEUE_KIND,
)


def _fault(name: str, queue_kind: QueueKind) -> str:
    return (
        "" if queue_kind.kind == name else f"its kind is named {queue_kind.kind!r}; name the entry point so"
    )


# Kinds of queue by name: those of vNET and those of plug-ins.
QUEUE_KINDS = Registry("vnet.queues", {one.kind: one for one in _OWN}, QueueKind, _fault)


@functools.cache
def _stack(kind: str, delays: bool, steered: bool) -> Stack:
    return Stack(QUEUE_KINDS[kind], delays, steered)


def queue_of(wanted: Impairment) -> Queue | None:
    """Returns the queue that applies an impairment: a Stack for a stated queue, tbf for a rate with
    backpressure alone, else netem; None for a wire without impairment. netem precedes every rate, because it
    removes packets from the sending socket's account (skb_orphan_partial in netem_enqueue). Otherwise waiting
    packets would count against the socket, even across bridges, and stop the sender before the queue is full.
    Only `backpressure` leaves netem out, to behave like the sender's own network card.
    """
    if not wanted.present:
        return None
    if wanted.queue is not None:
        rated = Impairment(
            rate_bps=wanted.rate_bps, limit_packets=wanted.limit_packets, frame_bytes=wanted.frame_bytes,
            queue=wanted.queue, backpressure=True,
        )  # fmt: skip
        return _stack(wanted.queue.kind, wanted != rated, wanted.queue.steered)
    alone = Impairment(
        rate_bps=wanted.rate_bps, limit_packets=wanted.limit_packets, frame_bytes=wanted.frame_bytes,
        backpressure=True,
    )  # fmt: skip
    return tbf.QUEUE if wanted == alone else netem.QUEUE


def queue_kind_of(wanted: Impairment) -> QueueKind | None:
    """Returns the kind of the queue that the topology states; None if it states none."""
    return QUEUE_KINDS[wanted.queue.kind] if wanted.queue is not None else None


def trials() -> dict[str, str]:
    """Returns for each qdisc that a direction may need, by name, the rest of `tc qdisc add dev lo root`, a
    trial that shows whether a kernel has it.
    """
    return {"netem": "netem delay 1ms", "tbf": "tbf rate 1mbit burst 10kb latency 50ms"} | {
        queue_kind.qdisc: queue_kind.trial for queue_kind in QUEUE_KINDS.values() if queue_kind.trial
    }


def classful() -> set[str]:
    """Returns tc's names of those qdiscs whose classes and filters are read back, too."""
    return {queue_kind.qdisc for queue_kind in QUEUE_KINDS.values() if queue_kind.bands is not None}


def written(queue: Discipline) -> str:
    """Returns a queue in the notation of topology files: `{codel: {limit: 1000, target: 5 ms, ...}}`."""
    queue_kind = QUEUE_KINDS[queue.kind]
    if queue_kind.bands is None:
        inside = settings.written(queue_kind.settings, queue.settings)
    else:
        keys = queue_kind.bands.keys
        inside = {band.name: _mapping(_band(band, keys)) for band in queue.bands}
    return _mapping({queue.kind: _mapping(inside)})


def _band(band: Band, keys: Mapping[str, settings.Key]) -> dict[str, str]:
    values = {key: getattr(band, name) for name, key in keys.items()}
    own = {
        key.name: settings.text(key, value)
        for key, value in values.items()
        if (key.form, value) != ("flag", key.default)
    }
    lists = {"pcp": band.pcp, "dscp": band.dscp, "port": band.ports}
    named = {key: f"[{', '.join(map(str, values))}]" for key, values in lists.items() if values}
    return own | named | {"limit": str(band.limit_packets)}


def _mapping(parts: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {text}" for name, text in parts.items()) + "}"


def lone_bps(wanted: Impairment) -> int:
    """Returns the rate in bit/s that unmarked packets get without other traffic; 0 without a rate limit."""
    queue = queue_of(wanted)
    return queue.lone_bps(wanted) if queue is not None else 0


def sending_ns(wanted: Impairment, frame_bytes: int) -> int:
    """Returns the nanoseconds that the rate adds to a frame when there is no other traffic. It is 0 without a
    rate, and behind a token bucket, since the bucket is full then.
    """
    queue = queue_of(wanted)
    return queue.sending_ns(wanted, frame_bytes) if queue is not None else 0


def set_text(device: str, wanted: Impairment) -> str:
    """Returns lines for `tc -batch` that set an impairment on a device that has none."""
    return change_text(device, Impairment(), wanted)


def change_text(device: str, before: Impairment, after: Impairment) -> str:
    """Returns lines for `tc -batch` that turn `before` into `after`. Waiting packets stay in the queue,
    unless the kind of queue changes or the kernel cannot change a setting in place; then the queue is created
    anew.
    """
    old, new = queue_of(before), queue_of(after)
    gone = f"qdisc del dev {device} root\n" if old is not None else ""
    if new is None:
        return gone
    if new is not old or not new.takes(before, after):
        return gone + _lines(new, device, Impairment(), after)
    return _lines(new, device, before, after)


def parts(wanted: Impairment) -> tuple[Part, ...]:
    """Returns the queues of a direction whose counters are sampled beside those of the direction; empty if
    the topology states no queue.
    """
    queue = queue_of(wanted)
    return queue.parts(wanted) if isinstance(queue, Stack) else ()


def forget_text(device: str, wanted: Impairment) -> str:
    """Returns lines for `tc -batch` that reset the part of a queue's state that depends on past packets:
    RED's mean queue length. Returns "" for other kinds.
    """
    queue = queue_of(wanted)
    lines = queue.forget(device, wanted) if isinstance(queue, Stack) else []
    return "".join(f"{line}\n" for line in lines)


def _lines(queue: Queue, device: str, before: Impairment, after: Impairment) -> str:
    return "".join(f"{line}\n" for line in queue.lines(device, before, after))


def found(entries: list[Entry], device: str, like: Impairment) -> Impairment:
    """Returns a device's impairment as read from `tc -j qdisc`; an empty Impairment if the device has none of
    vNET's qdiscs. `like` supplies the values that the kernel does not report.
    """
    mine = [e for e in entries if e.get("dev") == device]
    if like.queue is not None and (stack := queue_of(like)) is not None:
        there = any(e.get("root") and e.get("kind") == stack.kind for e in mine)
        return stack.read(mine, like) if there else Impairment()
    for entry in mine:
        if entry.get("root") and entry.get("kind") in KINDS:
            return KINDS[entry["kind"]].read(mine, like)
    return Impairment()


def mismatches(asked: Impairment, entries: list[Entry], device: str) -> list[Mismatch]:
    """Returns (field, requested, read) for each difference between a device and the request. The field ""
    means that the qdisc is of another kind, and the field "queue" that the device has a queue that was not
    requested.
    """
    mine = [e for e in entries if e.get("dev") == device]
    queue = queue_of(asked)
    roots = [str(e.get("kind")) for e in mine if e.get("root")]
    ours = [kind for kind in roots if kind in KINDS]
    stacks = [e for e in mine if e.get("root") and e.get("handle") in (RATE, QUEUE)]
    ours += [str(e["kind"]) for e in stacks if e["kind"] not in KINDS]
    if queue is None:
        return [("", f"no {kind}", kind) for kind in ours]
    if queue.kind not in roots:
        return [("", queue.kind, ", ".join(roots) or "nothing")]
    below = [str(e["kind"]) for e in mine if e.get("handle") == QUEUE and asked.queue is None]
    return [("queue", "none", kind) for kind in below] + queue.mismatches(asked, mine)
