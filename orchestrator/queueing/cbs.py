"""Implements the queue kind `cbs`, the credit-based shaper of IEEE 802.1Qav in each band of a strict
priority; net/sched/sch_cbs.c below net/sched/sch_prio.c.

The kernel charges a frame when it takes it from its band, by the speed that the port states. With the send
slope that IEEE 802.1Q states for that speed (idle slope - port's speed), a frame costs its length and the
credit grows by the idle slope meanwhile, which is the standard's credit for any rate of the bucket above.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Band, Discipline, Impairment

from .discipline import LEAF, QUEUE, Bands, Fault, Part, Place, differing, entry, given
from .kind import Entry, Mismatch
from .prio import PrioKind
from .settings import Key

PORT_KBIT = 10_000_000  # speed in kbit/s that a veth device states (drivers/net/veth.c: SPEED_10000)
KBIT = 1000
INNER = 0x30  # handle of the first band's packet queue below its shaper

_EXAMPLE = (
    Band("a", pcp=(3,), limit_packets=30, rate_bps=2_000_000, ceil_bps=2_000_000),
    Band("b", pcp=(2,), dscp=(34,), limit_packets=40, rate_bps=1_000_000, ceil_bps=1_000_000),
    Band("rest", limit_packets=50),
)
_OTHER = dataclasses.replace(_EXAMPLE[0], limit_packets=31, rate_bps=3_000_000, ceil_bps=3_000_000)


class CbsKind(PrioKind):
    """Sets and reads back the queue kind `cbs`."""

    kind = "cbs"
    meaning = "Strict priority whose bands keep to their slope of credit (IEEE 802.1Qav)."
    bands = Bands(
        "CreditBand",
        "A band that a credit may shape.",
        most=8,
        keys={
            "rate_bps": Key(
                "idle_slope",
                "rate",
                None,
                "Rate at which credit grows: what the band may use of the link's rate (IEEE 802.1Q). "
                "Without it the band is not shaped.",
            )
        },
    )
    qdisc = "cbs"
    trial = "cbs idleslope 1000 sendslope -9999000 hicredit 100 locredit -100 offload 0"
    module, config = "sch_cbs", "NET_SCH_CBS"
    order = "credit"
    port_speed = True
    outages = False
    examples = (
        Discipline("cbs", bands=_EXAMPLE),
        Discipline("cbs", bands=(_OTHER, *_EXAMPLE[1:])),
    )

    def planned(self, settings: dict[str, Any], bands: tuple[Band, ...], rate_bps: int) -> Discipline:
        """Returns the plan's queue; a shaped band's guaranteed rate is its highest, too."""
        whole = (dataclasses.replace(one, ceil_bps=one.rate_bps) for one in bands)
        return Discipline(self.kind, settings, tuple(whole))

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        # imported here, because every import makes the start of a lab slower
        from ..language.units import text_bps

        shaped = [one for one in _bands(wanted) if one.rate_bps]
        if not shaped:
            rule = "has no band with `idle_slope`: it is strict priority"
            yield Fault((), None, rule, "write `idle_slope:` at a band, or the queue `prio`")
        for one in shaped:
            if one.rate_bps % KBIT:
                rule = "is no whole number of kbit/s, in which the kernel counts it"
                yield Fault((one.name, "idle_slope"), f"{one.rate_bps} bit/s", rule, "round it")
        for one, before in zip(_bands(wanted)[1:], _bands(wanted), strict=False):
            if one.rate_bps and not before.rate_bps:
                rule = f"stands after {before.name}, which no credit limits: it could take the whole rate"
                remedy = "write the bands with `idle_slope` first"
                yield Fault((one.name,), None, rule, remedy)
        total, whole = sum(one.rate_bps for one in shaped), wanted.rate_bps
        if whole and total >= whole:
            rule = f"gives {text_bps(total)} of a rate of {text_bps(whole)} to shaped bands"
            remedy = "lower them (IEEE 802.1Q recommends 75 % in all at most)"
            yield Fault((), None, f"{rule}; other frames need a part of it", remedy)

    def trace_faults(self, wanted: Impairment, slowest_bps: int, least_bps: int) -> Iterator[Fault]:
        rule = "has slopes of a fixed rate, and a trace changes it"
        yield Fault((), None, rule, "state a fixed rate, or take the queue `prio` or `htb`")

    def impossible(self, wanted: Impairment) -> str | None:
        # imported here, because every import makes the start of a lab slower
        from ..language.units import text_bps

        bands = _bands(wanted)
        for one in bands:
            if one.ceil_bps != one.rate_bps:
                rule = "an idle slope is guaranteed rate and ceiling at once; change both together"
                return f"class {one.name}: {rule}"
        found = next(iter(self.faults(wanted)), None)
        if found is None:
            return None
        shown = "; ".join(f"{one.name} {text_bps(one.rate_bps)}" for one in bands if one.rate_bps)
        return f"the queue {found.rule} ({shown}): {found.remedy}"

    def fixed(self, band: Band) -> object:
        return super().fixed(band), bool(band.rate_bps)

    def leaf(self, wanted: Impairment, at: Place, index: int) -> list[str]:
        band = _bands(wanted)[index]
        if not band.rate_bps:
            return super().leaf(wanted, at, index)
        queue = at.below(f"{LEAF + index:x}:").qdisc(
            f"{INNER + index:x}:", f"pfifo limit {band.limit_packets}"
        )
        return [_shaper(wanted, at, index), queue]

    def leaf_changes(self, before: Impairment, after: Impairment, at: Place, index: int) -> list[str]:
        """Returns the lines for a changed band; credits depend on the whole rate and on the bands before."""
        if not _bands(after)[index].rate_bps:
            return super().leaf_changes(before, after, at, index)
        shaper, queue = self.leaf(after, at, index)
        old_shaper, old_queue = self.leaf(before, at, index)
        return [new for new, old in ((shaper, old_shaper), (queue, old_queue)) if new != old]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        """Returns the bands' packet queues, which count what they drop; a shaper does not."""
        return tuple(
            Part(band.name, f"{(INNER if band.rate_bps else LEAF) + index:x}:")
            for index, band in enumerate(_bands(wanted))
        )

    def wrong_leaves(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        found: list[Mismatch] = []
        for index, (band, part) in enumerate(zip(_bands(wanted), self.parts(wanted), strict=True)):
            limit = entry(entries, part.handle).get("options", {}).get("limit")
            found += (
                []
                if limit == band.limit_packets
                else [(f"queue {band.name} limit", band.limit_packets, limit)]
            )
            if band.rate_bps:
                read = entry(entries, f"{LEAF + index:x}:").get("options", {})
                asked = _settings(wanted, index)
                found += differing([(f"queue {band.name} {w}", v, read.get(w), 0) for w, v in asked.items()])
        return found

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        return {word: int(named[word]) for word in ("idleslope", "sendslope", "hicredit", "locredit")}


QUEUE_KIND = CbsKind()


def waits_s(
    rate_bps: float, slopes_bps: Sequence[float], frame_bits: float, lower_bits: float
) -> list[float]:
    """Returns, for each shaped band in order, the longest time (s) that its first frame waits for others.

    While it waits, a lower frame ends (`lower_bits`), and each band j above sends what its slope I_j, its
    highest credit H_j and the debt of one frame L allow, on a link of rate C:
    wait * C = lower + sum(I_j * wait + H_j + L (1 - I_j / C)), H_j = I_j * wait_j.
    De Azua and Boyer, RTNS 2014, derive it for two bands; the sum is the same for more.
    """
    found: list[float] = []
    used = owed = 0.0
    for slope in slopes_bps:
        found.append((lower_bits + owed) / (rate_bps - used) if rate_bps > used else math.inf)
        owed += slope * found[-1] + frame_bits * (1 - slope / rate_bps)
        used += slope
    return found


def _bands(wanted: Impairment) -> tuple[Band, ...]:
    return wanted.queue.bands if wanted.queue is not None else ()


def _settings(wanted: Impairment, index: int) -> dict[str, int]:
    """Returns the kernel's settings of a band: slopes in kbit/s, credits in bytes. The credits do not clip:
    the highest is what the longest wait gives, the lowest the debt of a full frame.
    """
    slopes = [one.rate_bps for one in _bands(wanted) if one.rate_bps]
    frame = 8.0 * wanted.frame_bytes
    wait_s = waits_s(wanted.rate_bps, slopes, frame, frame)[index] if wanted.rate_bps else 0.0
    idle = _bands(wanted)[index].rate_bps // KBIT
    return {
        "idleslope": idle,
        "sendslope": idle - PORT_KBIT,
        "hicredit": math.ceil(slopes[index] * wait_s / 8) + 1,
        "locredit": -wanted.frame_bytes,
    }


def _shaper(wanted: Impairment, at: Place, index: int) -> str:
    said = " ".join(f"{word} {value}" for word, value in _settings(wanted, index).items())
    return at.below(QUEUE, index + 1).qdisc(f"{LEAF + index:x}:", f"cbs {said} offload 0")
