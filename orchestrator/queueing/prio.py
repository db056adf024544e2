"""Implements the queue kind `prio`, strict priority: one queue for each band, the first served first;
net/sched/sch_prio.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Band, Impairment

from . import matching
from .discipline import LEAF, QUEUE, Part, Place, entry, leaf_parts
from .kind import Entry, Mismatch

PRIORITIES = 16  # of the kernel's own classification, which only decides where no filter does


class PrioRoom:
    """Sets and reads back the queue kind `prio`."""

    kind = "prio"
    root = "tbf"
    shapes = False

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        bands = _bands(wanted)
        rest = next(i for i, band in enumerate(bands) if band.rest)
        priomap = " ".join([str(rest)] * PRIORITIES)
        return [
            at.qdisc(QUEUE, f"prio bands {len(bands)} priomap {priomap}"),
            *(_leaf(at, i, band) for i, band in enumerate(bands)),
            *matching.lines(at.device, bands, _targets(bands)),
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        old, new = _bands(before), _bands(after)
        if [_kind_of(b) for b in old] != [_kind_of(b) for b in new]:
            return None
        return [_leaf(at, i, b) for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

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
        return found + leaves(bands, entries) + matching.mismatches(bands, _targets(bands), entries)

    def packets(self, wanted: Impairment) -> int:
        return sum(band.limit_packets for band in _bands(wanted))

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return 0


ROOM = PrioRoom()


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


def _kind_of(band: Band) -> object:
    """Returns the settings of a band that cannot change while packets wait."""
    return band.name, band.pcp, band.dscp, band.ports


def _leaf(at: Place, index: int, band: Band) -> str:
    return at.below(QUEUE, index + 1).qdisc(f"{LEAF + index:x}:", f"pfifo limit {band.limit_packets}")


def _targets(bands: Sequence[Band]) -> list[str]:
    return [f"{QUEUE}{index + 1:x}" for index in range(len(bands))]
