"""Implements the queue kind `netem`, for all impairments except a rate with backpressure alone;
net/sched/sch_netem.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contract.plan import Impairment, Slot

from . import words
from .kind import Entry, Mismatch

# us; tc counts netem's delays in whole microseconds and may round down once more (jitter 300us reads 299us)
TIME_TOLERANCE_NS = 2_000
RATE_TOLERANCE_BPS = 8  # netem stores bytes per second
# netem keeps probabilities in 32 bits, and tc prints six digits
SHARE_TOLERANCE = 2**-31
SHARE_DIGITS = 1e-5
# Any rate makes netem keep packets in order; at this one a full frame takes 0.12 us.
ORDERLY_BPS = 100 * 10**9
SLOT_TIMES = ("min_ns", "max_ns", "mean_ns", "jitter_ns")
_SHARES = ("loss", "duplicate", "corrupt", "reorder")
_TOLERANCES: dict[str, float] = {
    "delay_ns": TIME_TOLERANCE_NS, "jitter_ns": TIME_TOLERANCE_NS,
    "rate_bps": RATE_TOLERANCE_BPS, "limit_packets": 0,
    "gemodel": SHARE_TOLERANCE, "delay_correlation": SHARE_TOLERANCE,
} | {
    f"{quantity}{part}": SHARE_TOLERANCE for quantity in _SHARES for part in ("", "_correlation")
}  # fmt: skip


class Netem:
    """Sets and reads back the queue kind `netem`."""

    kind = "netem"

    def takes(self, before: Impairment, after: Impairment) -> bool:
        """Returns whether netem can change in place. It cannot change the delay's distribution, remove slots
        or change their table, or remove the delay while packets are reordered.
        """
        if before.slot is not None and (after.slot is None or after.slot.table != before.slot.table):
            return False
        return before.distribution == after.distribution and not (before.reorder and not after.delay_ns)

    def lines(self, device: str, before: Impairment, after: Impairment) -> list[str]:
        return [f"qdisc replace dev {device} root handle 1: {text(after, before)}"]

    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment:
        root = next(e for e in entries if e.get("root"))
        return from_options(root.get("options", {}), like)

    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        read = self.read(entries, asked)
        return [
            (field, getattr(asked, field), getattr(read, field))
            for field, tolerance in _TOLERANCES.items()
            if _matters(asked, field) and not _near(getattr(asked, field), getattr(read, field), tolerance)
        ] + _slots(asked.slot, read.slot)

    def sending_ns(self, wanted: Impairment, frame_bytes: int) -> int:
        return frame_bytes * 8 * 10**9 // wanted.rate_bps if wanted.rate_bps else 0

    def at_once_bytes(self, wanted: Impairment) -> int:
        return 0

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps


QUEUE = Netem()
_NOTHING = Impairment()


def text(wanted: Impairment, before: Impairment = _NOTHING) -> str:
    """Returns netem's arguments for `tc qdisc`, for example `netem limit 1000 delay 10ms 1ms rate 1gbit`. A
    change keeps some settings that the command does not name, such as correlations, corruption and the rate
    (netem_change in the kernel). The arguments therefore also name the settings of `before`, with zero if
    `wanted` lacks them.
    """
    found = ["netem", f"limit {wanted.limit_packets}"]
    if wanted.delay_ns:
        found.append(_delay(wanted, before))
    found += _loss(wanted, before)
    found += _chance("duplicate", wanted, before, "duplicate")
    found += _chance("corrupt", wanted, before, "corrupt")
    if wanted.delay_ns:  # tc accepts reorder only after a delay
        found += _chance("reorder", wanted, before, "reorder")
    if _rate(wanted) or _rate(before):
        found.append(f"rate {words.bits(_rate(wanted))}")
    if (slot := wanted.slot) is not None:
        found.append(_slot_text(slot))
        found += [f"{name} {n}" for name, n in (("packets", slot.packets), ("bytes", slot.bytes)) if n]
    return " ".join(found)


def _slot_text(slot: Slot) -> str:
    if slot.table is None:
        return f"slot {words.time(slot.min_ns)} {words.time(slot.max_ns)}"
    return f"slot distribution {slot.table} {words.time(slot.mean_ns)} {words.time(slot.jitter_ns)}"


def _rate(wanted: Impairment) -> int:
    return wanted.rate_bps or (ORDERLY_BPS if _orderly(wanted) else 0)


def _orderly(wanted: Impairment) -> bool:
    """Returns whether netem gets the rate ORDERLY_BPS if the impairment has none. Slots without a delay need
    a rate, since netem_enqueue removes packets from their socket's account only with a delay or a rate.
    """
    return wanted.netem_stays or (wanted.slot is not None and not wanted.delay_ns)


def _delay(wanted: Impairment, before: Impairment) -> str:
    found = [f"delay {words.time(wanted.delay_ns)}"]
    if wanted.jitter_ns or before.delay_correlation:
        found.append(words.time(wanted.jitter_ns))
        if wanted.delay_correlation or before.delay_correlation:
            found.append(words.percent(wanted.delay_correlation))
        if wanted.jitter_ns and wanted.distribution != "uniform":
            found.append(f"distribution {wanted.distribution}")
    return " ".join(found)


def _loss(wanted: Impairment, before: Impairment) -> list[str]:
    if wanted.gemodel is not None:
        return ["loss gemodel " + " ".join(words.percent(share) for share in wanted.gemodel)]
    return _chance("loss random", wanted, before, "loss", before.gemodel is not None)


def _chance(
    name: str, wanted: Impairment, before: Impairment, quantity: str, named: bool = False
) -> list[str]:
    share, correlation = getattr(wanted, quantity), getattr(wanted, f"{quantity}_correlation")
    had = getattr(before, f"{quantity}_correlation")
    if not (share or had or named or getattr(before, quantity)):
        return []
    found = [name, words.percent(share)]
    if correlation or had:
        found.append(words.percent(correlation))
    return [" ".join(found)]


def from_options(options: Entry, like: Impairment = _NOTHING) -> Impairment:
    """Returns the impairment for the options of a netem qdisc (`tc -j`). The distribution and fields that
    concern no netem option come from `like`, since the kernel does not report them. A rate of ORDERLY_BPS
    becomes 0 if `like` needs that rate.
    """
    delay, loss = options.get("delay", {}), options.get("loss-random", {})
    gemodel = options.get("loss-gemodel")
    shares: dict[str, float] = {
        "loss": loss.get("loss", 0.0),
        "loss_correlation": loss.get("correlation", 0.0),
    }
    for quantity in ("duplicate", "corrupt", "reorder"):
        part = options.get(quantity, {})
        shares |= {quantity: part.get(quantity, 0.0), f"{quantity}_correlation": part.get("correlation", 0.0)}
    rate, slot = options.get("rate", {}).get("rate", 0) * 8, options.get("slot")
    return Impairment(
        delay_ns=round(delay.get("delay", 0) * 1e9),
        jitter_ns=round(delay.get("jitter", 0) * 1e9),
        distribution=like.distribution,
        delay_correlation=delay.get("correlation", 0.0),
        gemodel=tuple(float(gemodel[k]) for k in ("p", "r", "1-h", "1-k")) if gemodel else None,  # type: ignore[arg-type]
        rate_bps=0 if _orderly(like) and rate == ORDERLY_BPS else rate,
        limit_packets=options.get("limit", 0),
        frame_bytes=like.frame_bytes,
        slot=_slot(slot, like.slot) if slot else None,
        netem_stays=like.netem_stays,
        backpressure=like.backpressure,
        **shares,  # type: ignore[arg-type]
    )


def _slot(options: Entry, like: Slot | None) -> Slot:
    """Returns the slot setting that the kernel reports; the name of a table comes from `like`, since the
    kernel does not report it.
    """
    packets, size = int(options.get("packets", 0)), int(options.get("bytes", 0))
    if "distribution" in options:
        mean, jitter = (round(options[name] * 1e9) for name in ("distribution", "jitter"))
        known = like or Slot(0, 0)
        return Slot(known.min_ns, known.max_ns, packets, size, known.table, mean, jitter)
    least, most = (round(options.get(f"{name}-delay", 0) * 1e9) for name in ("min", "max"))
    return Slot(least, most, packets, size)


def _slots(asked: Slot | None, read: Slot | None) -> list[Mismatch]:
    if asked is None or read is None:
        return [] if asked is read else [("slot", asked, read)]
    times = [(getattr(asked, name), getattr(read, name)) for name in SLOT_TIMES]
    sizes = [(asked.packets, read.packets), (asked.bytes, read.bytes), (asked.table, read.table)]
    same = all(abs(a - r) <= TIME_TOLERANCE_NS for a, r in times) and all(a == r for a, r in sizes)
    return [] if same else [("slot", asked, read)]


def _matters(asked: Impairment, field: str) -> bool:
    """Returns whether tc reports the field; tc leaves out the correlation of an impairment that is zero."""
    quantity = field.removesuffix("_correlation")
    if quantity == field:
        return True
    return bool(getattr(asked, "jitter_ns" if quantity == "delay" else quantity))


def _near(asked: Any, read: Any, tolerance: float) -> bool:
    if isinstance(asked, tuple) and isinstance(read, tuple):
        return all(_near(a, r, tolerance) for a, r in zip(asked, read, strict=True))
    if asked is None or read is None:
        return asked is read
    digits = SHARE_DIGITS * abs(asked) if isinstance(asked, float) else 0.0
    return bool(abs(asked - read) <= tolerance + digits)
