"""Implements the queue kind `fq_codel`: one queue for each flow, kept short by CoDel (RFC 8290);
net/sched/sch_fq_codel.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import FqCodel, Impairment

from . import words
from .discipline import QUEUE, Part, Place, differing, entry
from .kind import Entry, Mismatch

TIME_TOLERANCE_US = 2  # the kernel counts CoDel's times in units of 1.024 us
MEMORY_BYTES = 32 << 20  # its own default, which frames must not reach before the limit


class FqCodelRoom:
    """Sets and reads back the queue kind `fq_codel`."""

    kind = "fq_codel"
    root = "tbf"
    shapes = False

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [at.qdisc(QUEUE, f"fq_codel flows {_fq(wanted).flows} {_settings(wanted)}")]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns the commands from `before` to `after`; None if the number of flow queues differs, which the
        kernel cannot change.
        """
        if _fq(before).flows != _fq(after).flows:
            return None
        return [at.qdisc(QUEUE, f"fq_codel {_settings(after)}")]

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        fq, read = _fq(wanted), entry(entries, QUEUE).get("options", {})
        found = differing([
            ("queue flows", fq.flows, read.get("flows"), 0),
            ("queue limit", fq.limit_packets, read.get("limit"), 0),
            ("queue target", fq.target_ns / 1000, read.get("target"), TIME_TOLERANCE_US),
            ("queue interval", fq.interval_ns / 1000, read.get("interval"), TIME_TOLERANCE_US),
        ])  # fmt: skip
        ecn = bool(read.get("ecn"))
        return found + ([("queue ecn", fq.ecn, ecn)] if ecn != fq.ecn else [])

    def packets(self, wanted: Impairment) -> int:
        return _fq(wanted).limit_packets

    def lone_bps(self, wanted: Impairment) -> int:
        return wanted.rate_bps

    def at_once_bytes(self, wanted: Impairment) -> int:
        return 0


ROOM = FqCodelRoom()


def _settings(wanted: Impairment) -> str:
    fq = _fq(wanted)
    return (
        f"limit {fq.limit_packets} target {words.time(fq.target_ns)} interval {words.time(fq.interval_ns)} "
        f"quantum {wanted.frame_bytes} memory_limit {MEMORY_BYTES} {'ecn' if fq.ecn else 'noecn'}"
    )


def _fq(wanted: Impairment) -> FqCodel:
    assert wanted.queue is not None and wanted.queue.fq_codel is not None
    return wanted.queue.fq_codel
