"""Checks queues: one kind, a rate, and bands with distinct filters; and the packet marks
that software sets.
"""

from __future__ import annotations

from ...language.dscp import MARKS, marks
from ...language.source import Path
from ...language.units import text_bps, text_bytes
from ...software.registry import kind_of
from ..impairments import Impairment
from ..queues import LEAST_BANDS, MOST_BANDS, Band, Queue
from .report import Report

MOST_CLASSES = 64
SAME = ("pcp", "dscp", "port")


def check(report: Report) -> None:
    """Reports queues without exactly one kind, without a rate, beside `limit`, or with bands, rates or
    settings that do not fit, and packet marks of software that no queue uses.
    """
    for name, segment in report.model.segments.items():
        _one(report, segment.medium, ("segments", name, "medium"))
    for name, link in report.model.links.items():
        for side in ("forward", "reverse", "both"):
            _one(report, getattr(link, side), ("links", name, side))
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        for side in ("forward", "reverse", "both"):
            _one(report, getattr(event, side), ("timeline", index, side))
    _marks(report)


def _marks(report: Report) -> None:
    """Reports packet marks that no queue uses, since they would not give the priority that the author
    expects.
    """
    if any(report.lost(section) for section in ("links", "timeline", "segments")):
        return
    links, events = report.model.links.values(), report.model.timeline
    ways = [way for one in links for way in (one.forward, one.reverse, one.both)]
    ways += [way for one in events for way in (one.forward, one.reverse, one.both)]
    ways += [segment.medium for segment in report.model.segments.values()]
    queues = [way.queue for way in ways if way is not None and way.queue is not None]
    served = {
        mark: {value for queue in queues for band in queue.bands.values() for value in getattr(band, mark)}
        for mark in MARKS
    }
    if any(queue.cake is not None and queue.cake.diffserv != "besteffort" for queue in queues):
        served["dscp"] = set(range(64))
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            for label, software in machine.software.items():
                kind = kind_of(software)
                here = (section, name, "software", label, kind.key)
                _marked(report, getattr(software, kind.key, None), here, served, tagged=bool(machine.vlan))


def _marked(
    report: Report, options: object, here: Path, served: dict[str, set[int]], *, tagged: bool
) -> None:
    """Reports a PCP without `vlan` at the node, and each mark of one piece of software that no queue serves,
    except PCP 0.
    """
    for mark, value in marks(options).items():
        if mark == "pcp" and not tagged:
            rule = "is of a tag, and this node's frames have none"
            report.add((*here, mark), value, rule, "write `vlan:` at the nodes of its subnet")
        if value not in served[mark] and (mark, value) != ("pcp", 0):
            known = ", ".join(map(str, sorted(served[mark]))) or "none"
            rule = f"no queue of a link serves it; their bands name {mark.upper()}: {known}"
            remedy = f"write `queue: {{prio: {{NAME: {{{mark}: {value}}}, rest: {{}}}}}}` at a link"
            report.add((*here, mark), value, rule, remedy)


def _one(report: Report, impairment: Impairment | None, path: Path) -> None:
    if impairment is None or impairment.queue is None:
        return
    queue, here = impairment.queue, (*path, "queue")
    if len(queue.kinds) != 1:
        rule = f"names {' and '.join(queue.kinds)}" if queue.kinds else "names no kind of queue"
        report.add(here, None, rule, f"write one of {', '.join(type(queue).model_fields)}")
        return
    if not impairment.rate:
        rule = "stands before no rate: where everything is sent at once nothing waits"
        report.add(here, None, rule, "write `rate:` beside it")
    if impairment.limit is not None:
        rule = "conflicts with a queue, which has limits of its own"
        report.add((*path, "limit"), impairment.limit, rule, f"write it in `queue: {queue.kinds[0]}:`")
    _bands(report, queue, (*here, queue.kinds[0]))
    _rates(report, queue, impairment.rate or 0, here)
    if (red := queue.red) is not None:
        _red(report, red.min, red.max, red.limit, red.probability, (*here, "red"))
    if (fq := queue.fq_codel) is not None and not 0 < fq.target < fq.interval:
        rule = "the target is not below the interval" if fq.target else "a target of 0 drops everything"
        report.add((*here, "fq_codel", "target"), None, rule, "RFC 8290 has 5 ms of 100 ms")
    if (cake := queue.cake) is not None and cake.rtt < 1000:
        report.add((*here, "cake", "rtt"), None, "is below 1 us", "write the longest usual round trip")


def _bands(report: Report, queue: Queue, path: Path) -> None:
    if queue.prio is None and queue.htb is None:
        return
    bands = queue.bands
    most = MOST_BANDS if queue.prio is not None else MOST_CLASSES
    if not LEAST_BANDS <= len(bands) <= most:
        rule = f"has {len(bands)} bands; a queue of this kind has {LEAST_BANDS} to {most}"
        report.add(path, None, rule, "packets of the same treatment share a band")
        return
    rest = [name for name, band in bands.items() if _takes_the_rest(band)]
    if not rest:
        rule = "every band names what belongs to it, and nothing takes the rest"
        report.add(path, None, rule, "add a band that names nothing, for example `rest: {}`")
    for name in rest[1:]:
        rule = f"names no packets, as {rest[0]} does: which takes the rest?"
        report.add((*path, name), None, rule, "write `pcp:`, `dscp:` or `port:` at one of them")
    seen: dict[tuple[str, int], str] = {}
    for name, band in bands.items():
        for key in SAME:
            for value in getattr(band, key):
                first = seen.setdefault((key, value), name)
                if first != name:
                    rule = f"belongs to {first} already"
                    report.add((*path, name, key), value, rule, "name it in one band")


def _takes_the_rest(band: Band) -> bool:
    return not (band.pcp or band.dscp or band.port)


def _rates(report: Report, queue: Queue, rate: int, path: Path) -> None:
    classes = queue.htb or {}
    for name, one in classes.items():
        here = (*path, "htb", name)
        if not one.rate:
            report.add((*here, "rate"), "0", "guarantees nothing", "write at least 8 kbit/s")
        if one.ceil is not None and one.ceil < one.rate:
            rule = f"is below the guaranteed {text_bps(one.rate)}"
            report.add((*here, "ceil"), text_bps(one.ceil), rule, "raise it, or lower `rate`")
        if one.ceil is not None and rate and one.ceil > rate:
            rule = f"is above the whole rate, {text_bps(rate)}"
            report.add((*here, "ceil"), text_bps(one.ceil), rule, "lower it, or leave it out")
    total = sum(one.rate for one in classes.values())
    if rate and total > rate:
        rule = f"guarantees {text_bps(total)} in all, of a rate of {text_bps(rate)}"
        report.add((*path, "htb"), None, rule, "lower the classes' rates")


def _red(report: Report, low: int, high: int, limit: int | None, probability: float, path: Path) -> None:
    if not 0 < low < high:
        rule = f"is not above 0 and below max, {text_bytes(high)}"
        report.add((*path, "min"), text_bytes(low), rule, "a third of max is usual")
    if limit is not None and limit <= high:
        rule = f"is not above max, {text_bytes(high)}"
        report.add((*path, "limit"), text_bytes(limit), rule, "leave it out: 4 times max")
    if not 0 < probability < 1:
        report.add((*path, "probability"), None, "is not between 0 and 1", "2 % is usual")
