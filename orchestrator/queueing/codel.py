"""Implements the queue kind `codel`: one queue, kept short by the time that packets wait in it (RFC 8289);
net/sched/sch_codel.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from . import words
from .discipline import QUEUE, Fault, Part, Place, QueueKind, differing, entry, given
from .kind import Entry, Mismatch
from .settings import count, discipline, duration, flag, settings_of

TIME_TOLERANCE_US = 2  # the kernel counts CoDel's times in units of 1.024 us
# position of ecn_mark in tc_codel_xstats: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit,
# ecn_mark
MARKED_AT = 24


@dataclass(frozen=True, slots=True)
class Codel:
    """One queue for all flows, kept short by CoDel (RFC 8289)."""

    limit_packets: int = count("limit", 1000, "Length of the queue, packets.")
    target_ns: int = duration("target", "5 ms", "Standing delay that is accepted.")
    interval_ns: int = duration("interval", "100 ms", "Time for which `target` may be exceeded.")
    ecn: bool = flag("ecn", False, "Mark packets that can carry ECN instead of dropping.")


class CodelKind(QueueKind):
    """Sets and reads back the queue kind `codel`."""

    kind = "codel"
    meaning = "One short queue for all flows."
    settings = Codel
    qdisc = trial = "codel"
    module, config = "sch_codel", "NET_SCH_CODEL"
    order = "fifo"
    examples = (
        discipline("codel", Codel(900, 4 * 10**6, 80 * 10**6, True)),
        discipline("codel", Codel(800, 3 * 10**6, 70 * 10**6, False)),
    )

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        codel = _codel(wanted)
        if not 0 < codel.target_ns < codel.interval_ns:
            rule = "the target is 0" if not codel.target_ns else "the target is not below the interval"
            yield Fault(("target",), None, rule, "RFC 8289 has 5 ms of 100 ms")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        codel = _codel(wanted)
        return [
            at.qdisc(
                QUEUE,
                f"codel limit {codel.limit_packets} target {words.time(codel.target_ns)} "
                f"interval {words.time(codel.interval_ns)} {'ecn' if codel.ecn else 'noecn'}",
            )
        ]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE, marked_at=MARKED_AT),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        codel, read = _codel(wanted), entry(entries, QUEUE).get("options", {})
        found = differing([
            ("queue limit", codel.limit_packets, read.get("limit"), 0),
            ("queue target", codel.target_ns / 1000, read.get("target"), TIME_TOLERANCE_US),
            ("queue interval", codel.interval_ns / 1000, read.get("interval"), TIME_TOLERANCE_US),
        ])  # fmt: skip
        ecn = bool(read.get("ecn"))
        return found + ([("queue ecn", codel.ecn, ecn)] if ecn != codel.ecn else [])

    def packets(self, wanted: Impairment) -> int:
        return _codel(wanted).limit_packets

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        times = {n: round(words.scaled(named[n], words.TIMES) * 1e6) for n in ("target", "interval")}
        return {"limit": int(named["limit"])} | times | {"ecn": "ecn" in arguments}


QUEUE_KIND = CodelKind()


def _codel(wanted: Impairment) -> Codel:
    return settings_of(Codel, wanted)
