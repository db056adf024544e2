"""Implements the queue kind `fq`: a queue for each flow, served in turn, with an optional threshold above
which packets are marked by ECN (as for L4S senders, RFC 9332); net/sched/sch_fq.c.

The kernel's pacing is off, so that the link's rate decides when a packet leaves, and not a sender's socket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from . import words
from .discipline import QUEUE, Fault, Part, Place, QueueKind, differing, entry, given
from .kind import Entry, Mismatch
from .settings import count, discipline, duration, settings_of

TIME_TOLERANCE_US = 2
NEVER_US = 2**32 - 1  # value of ce_threshold in a kernel without a threshold (fq_init: ~0U)
# position of ce_mark in struct tc_fq_qd_stats: eight counters of 64 bits and four of 32 precede it
MARKED_AT = 80


@dataclass(frozen=True, slots=True)
class Fq:
    """A queue for each flow, served in turn; it can mark packets by ECN after a short delay."""

    limit_packets: int = count("limit", 10000, "Length of all queues together, packets.")
    flow_limit_packets: int = count("flow_limit", 100, "Length of each flow's queue, packets.")
    ce_threshold_ns: int = duration(
        "ce_threshold",
        "0 s",
        "Wait above which a packet that can carry ECN is marked (RFC 9332 has 1 ms); 0: none is marked.",
    )


class FqKind(QueueKind):
    """Sets and reads back the queue kind `fq`."""

    kind = "fq"
    meaning = "Fair queueing, with marks of ECN above a threshold (as for L4S)."
    settings = Fq
    qdisc = trial = "fq"
    module, config = "sch_fq", "NET_SCH_FQ"
    order = "any"
    keeps = True
    examples = (
        discipline("fq", Fq(900, 90, 2 * 10**6)),
        discipline("fq", Fq(800, 80, 10**6)),
    )

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        fq = _fq(wanted)
        if fq.flow_limit_packets > fq.limit_packets:
            rule = f"is above `limit`, {fq.limit_packets}: one flow could fill all queues"
            yield Fault(("flow_limit",), str(fq.flow_limit_packets), rule, "lower it, or raise `limit`")
        if fq.ce_threshold_ns >= NEVER_US * 1000:
            rule = f"is not below {NEVER_US} us, with which the kernel marks no packet"
            yield Fault(("ce_threshold",), None, rule, "RFC 9332 has 1 ms")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        fq = _fq(wanted)
        mark = f"{NEVER_US}us" if not fq.ce_threshold_ns else words.time(fq.ce_threshold_ns)
        return [
            at.qdisc(
                QUEUE,
                f"fq limit {fq.limit_packets} flow_limit {fq.flow_limit_packets} "
                f"quantum {wanted.frame_bytes} initial_quantum {wanted.frame_bytes} nopacing "
                f"ce_threshold {mark}",
            )
        ]

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE, marked_at=MARKED_AT),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        fq, read = _fq(wanted), entry(entries, QUEUE).get("options", {})
        found = differing([
            ("queue limit", fq.limit_packets, read.get("limit"), 0),
            ("queue flow_limit", fq.flow_limit_packets, read.get("flow_limit"), 0),
            ("queue quantum", wanted.frame_bytes, read.get("quantum"), 0),
            ("queue initial_quantum", wanted.frame_bytes, read.get("initial_quantum"), 0),
        ])  # fmt: skip
        if read.get("pacing", True):
            found.append(("queue pacing", "off", "on"))
        return found + _threshold(fq, read)

    def packets(self, wanted: Impairment) -> int:
        return _fq(wanted).limit_packets

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        sizes = {name: int(named[name]) for name in ("limit", "flow_limit", "quantum", "initial_quantum")}
        mark = round(words.scaled(named["ce_threshold"], words.TIMES) * 1e6)
        return sizes | {"pacing": False} | ({} if mark >= NEVER_US else {"ce_threshold": mark})


QUEUE_KIND = FqKind()


def _threshold(fq: Fq, read: Entry) -> list[Mismatch]:
    """Compares the threshold, which tc prints in us and omits if there is none."""
    asked, found = fq.ce_threshold_ns / 1000, read.get("ce_threshold")
    if not fq.ce_threshold_ns:
        return [] if found is None or found >= NEVER_US else [("queue ce_threshold", "none", found)]
    return differing([("queue ce_threshold", asked, found, TIME_TOLERANCE_US)])


def _fq(wanted: Impairment) -> Fq:
    return settings_of(Fq, wanted)
