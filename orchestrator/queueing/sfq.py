"""Implements the queue kind `sfq`: stochastic fair queueing, a queue for each hash of a flow, served in turn
(McKenney 1990); net/sched/sch_sfq.c.

The kernel cannot change its settings while packets wait (no `change` in sfq_qdisc_ops).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from .discipline import QUEUE, Fault, Place, QueueKind, differing, entry, given
from .kind import Entry, Mismatch
from .settings import count, discipline, settings_of

FLOWS = 127  # SFQ_DEFAULT_FLOWS: number of queues in which packets can wait at the same time
DEPTH = 127  # SFQ_MAX_DEPTH, which tc does not print


@dataclass(frozen=True, slots=True)
class Sfq:
    """A queue for each flow, served in turn (McKenney 1990)."""

    limit_packets: int = count(
        "limit", 127, "Length of all queues together, packets.", least=2, most=FLOWS * DEPTH
    )
    depth_packets: int = count("depth", DEPTH, "Length of each queue, packets.", most=DEPTH)


class SfqKind(QueueKind):
    """Sets and reads back the queue kind `sfq`."""

    kind = "sfq"
    meaning = "Fair queueing: the flows send in turn."
    settings = Sfq
    qdisc = trial = "sfq"
    module, config = "sch_sfq", "NET_SCH_SFQ"
    order = "any"
    examples = (discipline("sfq", Sfq(300, 100)), discipline("sfq", Sfq(200, 90)))

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        sfq = _sfq(wanted)
        if sfq.limit_packets > FLOWS * sfq.depth_packets:
            rule = f"is above what {FLOWS} queues of {sfq.depth_packets} packets can hold"
            yield Fault(("limit",), str(sfq.limit_packets), rule, "lower it, or raise `depth`")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        sfq = _sfq(wanted)
        return [
            at.qdisc(
                QUEUE,
                f"sfq limit {sfq.limit_packets} depth {sfq.depth_packets} flows {FLOWS} "
                f"quantum {wanted.frame_bytes}",
            )
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        return [] if _sfq(before) == _sfq(after) else None

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        sfq, read = _sfq(wanted), entry(entries, QUEUE).get("options", {})
        return differing([
            ("queue limit", sfq.limit_packets, read.get("limit"), 0),
            ("queue depth", sfq.depth_packets, read.get("depth", DEPTH), 0),
            ("queue quantum", wanted.frame_bytes, read.get("quantum"), 0),
        ])  # fmt: skip

    def packets(self, wanted: Impairment) -> int:
        return _sfq(wanted).limit_packets

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        return {name: int(named[name]) for name in ("limit", "depth", "quantum")}


QUEUE_KIND = SfqKind()


def _sfq(wanted: Impairment) -> Sfq:
    return settings_of(Sfq, wanted)
