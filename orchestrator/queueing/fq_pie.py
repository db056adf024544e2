"""Implements the queue kind `fq_pie`: a queue for each flow, kept short by PIE (RFC 8033);
net/sched/sch_fq_pie.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from . import words
from .discipline import QUEUE, Fault, Part, Place, QueueKind, differing, entry, given
from .kind import Entry, Mismatch
from .settings import count, discipline, duration, flag, settings_of

TIME_TOLERANCE_US = 2  # the kernel counts times in units of 64 ns, and tc prints us
MEMORY_BYTES = 32 << 20  # the kernel's default; the packets must reach `limit` before this
ECN_PROBABILITY = 10  # %; below this drop probability packets are marked, above it dropped (RFC 8033, 5.1)
# position of ecn_mark in struct tc_fq_pie_xstats: packets_in, dropped, overlimit, overmemory, ecn_mark
MARKED_AT = 16


@dataclass(frozen=True, slots=True)
class FqPie:
    """A queue for each flow, kept short by PIE (RFC 8033)."""

    limit_packets: int = count("limit", 10240, "Length of all queues together, packets.")
    flows: int = count("flows", 1024, "Number of queues; a hash of each flow chooses its queue.", most=65536)
    target_ns: int = duration("target", "15 ms", "Delay that the queue is held at.")
    update_ns: int = duration("tupdate", "15 ms", "Time between two changes of the drop probability.")
    ecn: bool = flag("ecn", False, "Mark packets that can carry ECN while the probability is below 10 %.")


class FqPieKind(QueueKind):
    """Sets and reads back the queue kind `fq_pie`."""

    kind = "fq_pie"
    meaning = "Fair queueing, with queues kept short by PIE."
    settings = FqPie
    qdisc = trial = "fq_pie"
    module, config = "sch_fq_pie", "NET_SCH_FQ_PIE"
    order = "any"
    keeps = True
    examples = (
        discipline("fq_pie", FqPie(1000, 256, 20 * 10**6, 16 * 10**6, True)),
        discipline("fq_pie", FqPie(900, 256, 12 * 10**6, 20 * 10**6, False)),
    )

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        pie = _pie(wanted)
        if not pie.target_ns:
            yield Fault(("target",), None, "a target of 0 drops everything", "RFC 8033 has 15 ms")
        if pie.update_ns < 10**6:
            rule = "is below 1 ms, the kernel's shortest time between two ticks of its timers"
            yield Fault(("tupdate",), None, rule, "RFC 8033 has 15 ms")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        return [at.qdisc(QUEUE, f"fq_pie flows {_pie(wanted).flows} {_settings(wanted)}")]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns the commands from `before` to `after`; None if the number of flow queues differs, which the
        kernel cannot change.
        """
        if _pie(before).flows != _pie(after).flows:
            return None
        return [at.qdisc(QUEUE, f"fq_pie {_settings(after)}")]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE, marked_at=MARKED_AT),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        pie, read = _pie(wanted), entry(entries, QUEUE).get("options", {})
        found = differing([
            ("queue flows", pie.flows, read.get("flows"), 0),
            ("queue limit", pie.limit_packets, read.get("limit"), 0),
            ("queue target", pie.target_ns / 1000, read.get("target"), TIME_TOLERANCE_US),
            ("queue tupdate", pie.update_ns / 1000, read.get("tupdate"), TIME_TOLERANCE_US),
            ("queue quantum", wanted.frame_bytes, read.get("quantum"), 0),
        ])  # fmt: skip
        ecn = bool(read.get("ecn"))
        return found + ([("queue ecn", pie.ecn, ecn)] if ecn != pie.ecn else [])

    def packets(self, wanted: Impairment) -> int:
        return _pie(wanted).limit_packets

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        times = {n: round(words.scaled(named[n], words.TIMES) * 1e6) for n in ("target", "tupdate")}
        sizes = {name: int(named[name]) for name in ("flows", "limit", "quantum") if name in named}
        return sizes | times | {"ecn": "ecn" in arguments}


QUEUE_KIND = FqPieKind()


def _settings(wanted: Impairment) -> str:
    pie = _pie(wanted)
    return (
        f"limit {pie.limit_packets} target {words.time(pie.target_ns)} tupdate {words.time(pie.update_ns)} "
        f"quantum {wanted.frame_bytes} memory_limit {MEMORY_BYTES} ecn_prob {ECN_PROBABILITY} "
        f"{'ecn' if pie.ecn else 'noecn'}"
    )


def _pie(wanted: Impairment) -> FqPie:
    return settings_of(FqPie, wanted)
