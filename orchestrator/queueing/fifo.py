"""Implements the queue kind `fifo`: first in, first out, behind a rate that may change while packets wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contract.plan import Discipline, Impairment

from . import shaper
from .discipline import LEAF, QUEUE, Part, Place, QueueKind, entry
from .kind import Entry, Mismatch
from .settings import count, discipline, settings_of
from .tbf import bucket_bytes


@dataclass(frozen=True, slots=True)
class Fifo:
    """First in, first out, below netem if there is a delay; a changed rate applies to waiting
    packets, too.
    """

    limit_packets: int = count("limit", 1000, "Length of the queue, packets.")


class FifoKind(QueueKind):
    """Sets and reads back the queue kind `fifo`."""

    kind = "fifo"
    meaning = (
        "First in, first out, after the delay and not inside it; a changed rate applies to waiting "
        "packets. The default with a `trace` that has rates."
    )
    settings = Fifo
    root = shaper.KIND
    shapes = True
    examples = (discipline("fifo", Fifo(70)), discipline("fifo", Fifo(90)))

    def words(self, wanted: Impairment) -> str:
        return f"{_fifo(wanted).limit_packets} packets"

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [shaper.qdisc(at, QUEUE), shaper.rate(at.device, QUEUE, wanted), _leaf(wanted, at)]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        same = _fifo(before).limit_packets == _fifo(after).limit_packets
        return [shaper.rate(at.device, QUEUE, after), *([] if same else [_leaf(after, at)])]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return ()

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        limit = _fifo(wanted).limit_packets
        there = entry(entries, f"{LEAF:x}:").get("options", {}).get("limit")
        found = shaper.mismatches(QUEUE, wanted, entries)
        return found + ([("queue limit", limit, there)] if there != limit else [])

    def packets(self, wanted: Impairment) -> int:
        return _fifo(wanted).limit_packets

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)


QUEUE_KIND = FifoKind()


def of_length(packets: int) -> Discipline:
    """Returns a queue of kind `fifo` with that length."""
    return discipline("fifo", Fifo(packets))


def _fifo(wanted: Impairment) -> Fifo:
    return settings_of(Fifo, wanted)


def _leaf(wanted: Impairment, at: Place) -> str:
    return shaper.below(at, QUEUE).qdisc(f"{LEAF:x}:", f"pfifo limit {_fifo(wanted).limit_packets}")
