"""Checks traces: the queue allows the rate to change, and no event changes the same link."""

from __future__ import annotations

from contract.plan import Impairment as PlanImpairment

from ...language.source import Path
from ...language.units import text_ns
from ...queueing import QUEUE_KINDS
from ..impairments import Impairment
from ..queues import Queue
from ..selection import select_all
from ..traces import LEAST_BPS
from .report import Report

SIDES = ("forward", "reverse", "both")


def check(report: Report) -> None:
    """Checks every trace of links and half-duplex segments, and reports timeline events that change a
    direction with a trace.
    """
    played: dict[str, list[str]] = {}
    for name, link in report.model.links.items():
        found = [side for side in SIDES if _traced(getattr(link, side))]
        if found:
            played |= dict.fromkeys(report.names.links.get(name, ()), found)
        for side in found:
            _one(report, getattr(link, side), ("links", name, side))
    for name, segment in report.model.segments.items():
        if segment.medium is not None and segment.medium.trace is not None:
            played[name] = ["medium"]
            _one(report, segment.medium, ("segments", name, "medium"))
    if not report.broken("links"):
        _events(report, played)


def _traced(way: Impairment | None) -> bool:
    return way is not None and way.trace is not None


def _one(report: Report, way: Impairment, path: Path) -> None:
    states = way.trace.trace.states
    if states[0].rate_bps is not None and way.queue is not None:
        _queue(report, way, way.queue, path)
    least = min((s.delay_ns for s in states if s.delay_ns is not None), default=None)
    if least is not None and way.jitter > least:
        rule = (
            f"is more than the trace's shortest delay, {text_ns(least)}; a packet cannot leave before it came"
        )
        report.add((*path, "jitter"), text_ns(way.jitter), rule, "lower it")
    if way.reorder and least == 0:
        rule = "needs a delay, and the trace has states without one"
        report.add((*path, "reorder"), None, rule, "leave it out")


def _queue(report: Report, way: Impairment, queue: Queue, path: Path) -> None:
    """Reports a queue that cannot work at all rates of the trace: a kind of queue that would send more than
    one frame at a rate of 0, and mistakes that the kind reports at the slowest rate.
    """
    rates = [state.rate_bps for state in way.trace.trace.states]
    for kind in [one for one in queue.kinds if not QUEUE_KINDS[one].outages and 0 in rates]:
        rule = "stands behind a rate that is 0 for a while, in which it would go on sending"
        remedy = "take another queue, or write a rate of 1 kbit/s and more into the trace"
        report.add((*path, "queue"), kind, rule, remedy)
    slowest = min(rate for rate in rates if rate)
    for kind in queue.kinds if len(queue.kinds) == 1 else ():
        wanted = PlanImpairment(rate_bps=way.rate or 0, queue=queue.discipline(way.rate))
        for fault in QUEUE_KINDS[kind].trace_faults(wanted, slowest, LEAST_BPS):
            report.add((*path, "queue", kind, *fault.at), fault.value, fault.rule, fault.remedy)


def _events(report: Report, played: dict[str, list[str]]) -> None:
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        targets = select_all(event.impair or [], list(played), report.names.links)
        for name in [target for target in targets if target in played][:1]:
            rule = f"is played from a trace ({', '.join(played[name])}), which would undo the change"
            report.add(
                ("timeline", index, "impair"), name, rule, "write the change into the trace, or use link-down"
            )
