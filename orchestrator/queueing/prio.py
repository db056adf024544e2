"""Implements the queue kind `prio`, strict priority: one queue for each band, the first served first;
net/sched/sch_prio.c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from contract.plan import Band, Discipline, Impairment

from . import matching
from .discipline import LEAF, QUEUE, Bands, Order, Part, Place, QueueKind, entry, given, leaf_parts
from .kind import Entry, Mismatch

PRIORITIES = 16  # priorities of the kernel's own classification, which applies only if no filter matches


_EXAMPLE = (
    Band("control", pcp=(6, 7), dscp=(48,), limit_packets=30),
    Band("named", ports=(5001,), limit_packets=40),
    Band("rest", limit_packets=50),
)


class PrioKind(QueueKind):
    """Sets and reads back the queue kind `prio`."""

    kind = "prio"
    meaning = "Strict priority: bands in their order, the first is always served first."
    bands = Bands("Band", "", most=16, keys={})  # TCQ_PRIO_BANDS
    qdisc = trial = "prio"
    module, config = "sch_prio", "NET_SCH_PRIO"
    order: Order = "priority"
    examples = (
        Discipline("prio", bands=_EXAMPLE),
        Discipline("prio", bands=(dataclasses.replace(_EXAMPLE[0], limit_packets=31), *_EXAMPLE[1:])),
    )

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        bands = _bands(wanted)
        rest = next(i for i, band in enumerate(bands) if band.rest)
        priomap = " ".join([str(rest)] * PRIORITIES)
        return [
            at.qdisc(QUEUE, f"prio bands {len(bands)} priomap {priomap}"),
            *(line for i in range(len(bands)) for line in self.leaf(wanted, at, i)),
            *matching.lines(at.device, bands, _targets(bands)),
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        old, new = _bands(before), _bands(after)
        if [self.fixed(b) for b in old] != [self.fixed(b) for b in new]:
            return None
        return [line for i in range(len(new)) for line in self.leaf_changes(before, after, at, i)]

    def fixed(self, band: Band) -> object:
        """Returns the settings of a band that cannot change while packets wait."""
        return band.name, band.pcp, band.dscp, band.ports

    def leaf(self, wanted: Impairment, at: Place, index: int) -> list[str]:
        """Returns tc lines that create the queue of one band."""
        limit = _bands(wanted)[index].limit_packets
        return [at.below(QUEUE, index + 1).qdisc(f"{LEAF + index:x}:", f"pfifo limit {limit}")]

    def leaf_changes(self, before: Impairment, after: Impairment, at: Place, index: int) -> list[str]:
        """Returns tc lines that change the queue of one band; waiting packets stay."""
        return self.leaf(after, at, index) if _bands(before)[index] != _bands(after)[index] else []

    def wrong_leaves(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        """Returns the mismatches of the bands' own queues."""
        return leaves(_bands(wanted), entries)

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return leaf_parts(_bands(wanted))

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        bands = _bands(wanted)
        options = entry(entries, QUEUE).get("options", {})
        rest = next(i for i, band in enumerate(bands) if band.rest)
        asked = {"bands": len(bands), "priomap": [rest] * PRIORITIES}
        found: list[Mismatch] = [
            (f"queue {word}", value, options.get(word))
            for word, value in asked.items()
            if options.get(word) != value
        ]
        return (
            found + self.wrong_leaves(wanted, entries) + matching.mismatches(bands, _targets(bands), entries)
        )

    def packets(self, wanted: Impairment) -> int:
        return sum(band.limit_packets for band in _bands(wanted))

    def fake(self, arguments: list[str]) -> Entry:
        map_at = arguments.index("priomap") + 1
        return {"bands": int(given(arguments)["bands"]), "priomap": [int(w) for w in arguments[map_at:]]}


QUEUE_KIND = PrioKind()


def leaves(bands: Sequence[Band], entries: Sequence[Entry]) -> list[Mismatch]:
    """Returns the mismatches of the lengths of the bands' own queues."""
    read = [entry(entries, f"{LEAF + i:x}:").get("options", {}).get("limit") for i in range(len(bands))]
    return [
        (f"queue {band.name} limit", band.limit_packets, limit)
        for band, limit in zip(bands, read, strict=True)
        if limit != band.limit_packets
    ]


def _bands(wanted: Impairment) -> tuple[Band, ...]:
    return wanted.queue.bands if wanted.queue is not None else ()


def _targets(bands: Sequence[Band]) -> list[str]:
    return [f"{QUEUE}{index + 1:x}" for index in range(len(bands))]
