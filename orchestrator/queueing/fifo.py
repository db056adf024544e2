"""Implements the queue kind `fifo`: first in, first out, behind a rate that may change while packets wait."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Fifo, Impairment

from . import shaper
from .discipline import LEAF, QUEUE, Part, Place, entry
from .kind import Entry, Mismatch
from .tbf import bucket_bytes


class FifoRoom:
    """Sets and reads back the queue kind `fifo`."""

    kind = "fifo"
    root = shaper.KIND
    shapes = True

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [shaper.qdisc(at, QUEUE), shaper.rate(at.device, QUEUE, wanted), _leaf(wanted, at)]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        same = _fifo(before).limit_packets == _fifo(after).limit_packets
        return [shaper.rate(at.device, QUEUE, after), *([] if same else [_leaf(after, at)])]

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return ()

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        limit = _fifo(wanted).limit_packets
        there = entry(entries, f"{LEAF:x}:").get("options", {}).get("limit")
        found = shaper.mismatches(QUEUE, wanted, entries)
        return found + ([("queue limit", limit, there)] if there != limit else [])

    def packets(self, wanted: Impairment) -> int:
        return _fifo(wanted).limit_packets

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)


ROOM = FifoRoom()


def _fifo(wanted: Impairment) -> Fifo:
    assert wanted.queue is not None and wanted.queue.fifo is not None
    return wanted.queue.fifo


def _leaf(wanted: Impairment, at: Place) -> str:
    return shaper.below(at, QUEUE).qdisc(f"{LEAF:x}:", f"pfifo limit {_fifo(wanted).limit_packets}")
