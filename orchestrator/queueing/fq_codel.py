"""Implements the queue kind `fq_codel`: one queue for each flow, kept short by CoDel (RFC 8290);
net/sched/sch_fq_codel.c.
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
MEMORY_BYTES = 32 << 20  # the kernel's default; the packets must reach `limit` before this


# position of ecn_mark in struct tc_fq_codel_xstats {type, {maxpacket, drop_overlimit, ecn_mark ...}}
MARKED_AT = 12


@dataclass(frozen=True, slots=True)
class FqCodel:
    """A queue for each flow, kept short by CoDel (RFC 8290)."""

    limit_packets: int = count("limit", 10240, "Length of all queues together, packets.")
    flows: int = count("flows", 1024, "Number of queues; a hash of each flow chooses its queue.", most=65536)
    target_ns: int = duration("target", "5 ms", "Standing delay that is accepted.")
    interval_ns: int = duration("interval", "100 ms", "Time for which `target` may be exceeded.")
    ecn: bool = flag("ecn", True, "Mark packets that can carry ECN instead of dropping.")


class FqCodelKind(QueueKind):
    """Sets and reads back the queue kind `fq_codel`."""

    kind = "fq_codel"
    meaning = "Fair queueing with short queues."
    settings = FqCodel
    qdisc = trial = "fq_codel"
    module, config = "sch_fq_codel", "NET_SCH_FQ_CODEL"
    order = "any"
    keeps = by_itself = True
    examples = (
        discipline("fq_codel", FqCodel(1000, 256, 4 * 10**6, 80 * 10**6, True)),
        discipline("fq_codel", FqCodel(900, 256, 3 * 10**6, 70 * 10**6, False)),
    )

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        fq = _fq(wanted)
        if not 0 < fq.target_ns < fq.interval_ns:
            rule = (
                "the target is not below the interval" if fq.target_ns else "a target of 0 drops everything"
            )
            yield Fault(("target",), None, rule, "RFC 8290 has 5 ms of 100 ms")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [at.qdisc(QUEUE, f"fq_codel flows {_fq(wanted).flows} {_settings(wanted)}")]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns the commands from `before` to `after`; None if the number of flow queues differs, which the
        kernel cannot change.
        """
        if _fq(before).flows != _fq(after).flows:
            return None
        return [at.qdisc(QUEUE, f"fq_codel {_settings(after)}")]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE, marked_at=MARKED_AT),)

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

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        times = {n: round(words.scaled(named[n], words.TIMES) * 1e6) for n in ("target", "interval")}
        sizes = {name: int(named[name]) for name in ("flows", "limit") if name in named}
        return sizes | times | {"ecn": "ecn" in arguments}


QUEUE_KIND = FqCodelKind()


def _settings(wanted: Impairment) -> str:
    fq = _fq(wanted)
    return (
        f"limit {fq.limit_packets} target {words.time(fq.target_ns)} interval {words.time(fq.interval_ns)} "
        f"quantum {wanted.frame_bytes} memory_limit {MEMORY_BYTES} {'ecn' if fq.ecn else 'noecn'}"
    )


def _fq(wanted: Impairment) -> FqCodel:
    return settings_of(FqCodel, wanted)
