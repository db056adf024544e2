"""Traces: queues whose rate they can change, and nobody else who changes the link."""

from __future__ import annotations

from ...language.source import Path
from ...language.units import text_ns
from ..network import Impairment, Link
from ..selection import select_all
from .report import Report

SIDES = ("forward", "reverse", "both")
# Those whose rate changes without a gift: a token bucket (tbf) begins full at each change.
QUEUES = ("fifo",)


def check(report: Report) -> None:
    """Every trace of a link."""
    played: dict[str, str] = {}
    for name, link in report.model.links.items():
        for side in SIDES:
            way: Impairment | None = getattr(link, side)
            if way is not None and way.trace is not None:
                played |= dict.fromkeys(report.names.links.get(name, ()), name)
                _one(report, way, ("links", name, side))
    if not report.broken("links"):
        _events(report, played)


def _one(report: Report, way: Impairment, path: Path) -> None:
    states = way.trace.trace.states
    if states[0].rate_bps is not None and way.queue is not None and way.queue.kinds[:1] != []:
        kind = way.queue.kinds[0]
        if kind not in QUEUES:
            rule = "stands behind a rate that a trace changes, which its token bucket would add to each time"
            report.add((*path, "queue"), kind, rule, f"write {' or '.join(QUEUES)}, or leave `queue` out")
    least = min((s.delay_ns for s in states if s.delay_ns is not None), default=None)
    if least is not None and way.jitter > least:
        rule = (
            f"is more than the trace's shortest delay, {text_ns(least)}; a packet cannot leave before it came"
        )
        report.add((*path, "jitter"), text_ns(way.jitter), rule, "lower it")
    if way.reorder and least == 0:
        rule = "needs a delay, and the trace has states without one"
        report.add((*path, "reorder"), None, rule, "leave it out")


def _events(report: Report, played: dict[str, str]) -> None:
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        targets = select_all(event.impair or [], list(played), report.names.links)
        for name in [target for target in targets if target in played][:1]:
            link: Link = report.model.links[played[name]]
            ways = [s for s in SIDES if (way := getattr(link, s)) is not None and way.trace is not None]
            rule = f"is played from a trace ({', '.join(ways)}), which would undo the change"
            report.add(
                ("timeline", index, "impair"), name, rule, "write the change into the trace, or use link-down"
            )
