"""Checks queues: one kind, a rate, and bands with distinct filters; and the packet marks
that software sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from contract.plan import Band
from contract.plan import Impairment as PlanImpairment

from ...language.dscp import MARKS, marks
from ...language.source import Path
from ...queueing import QUEUE_KINDS
from ...queueing.discipline import QueueKind
from ...software.registry import kind_of
from ..document import Event
from ..impairments import Impairment
from ..network import Link
from ..selection import select_all
from .report import Report

LEAST_BANDS = 2
SHARED = "a transmitter that several share states none"


def check(report: Report) -> None:
    """Reports queues that have several kinds or none, no rate, or the key `limit` beside them; bands, rates
    or settings that do not fit; and packet marks of software that no queue uses.
    """
    for name, segment in report.model.segments.items():
        _one(report, segment.medium, ("segments", name, "medium"))
        _port(report, segment.medium, ("segments", name, "medium"), SHARED)
    for name, link in report.model.links.items():
        for side in ("forward", "reverse", "both"):
            _one(report, getattr(link, side), ("links", name, side))
            _port(report, getattr(link, side), ("links", name, side), _stated(report, name, link))
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        for side in ("forward", "reverse", "both"):
            _one(report, getattr(event, side), ("timeline", index, side))
            _port(report, getattr(event, side), ("timeline", index, side), _changed(report, event))
    _marks(report)


def _port(report: Report, impairment: Impairment | None, path: Path, why: str) -> None:
    """Reports a queue that computes with its port's speed where the port is no veth device, for the reason
    `why`; "" if it is one.
    """
    if impairment is None or impairment.queue is None or not why:
        return
    for kind in impairment.queue.kinds:
        if QUEUE_KINDS[kind].port_speed:
            rule = f"computes with the speed that its port states, and {why}"
            report.add(
                (*path, "queue", kind), None, rule, "use `prio` or `htb` there, or a link of light nodes"
            )


def _stated(report: Report, name: str, link: Link) -> str:
    """Returns why a link's ports do not state the speed of veth devices; "" if they do."""
    machines = {**report.model.nodes, **report.model.groups}
    guests = [end for end in link.between if end in machines and machines[end].kind == "vm"]
    if link.duplex == "half":
        return SHARED
    if guests:
        return f"the port of {guests[0]}, a virtual machine, states another"
    return f"the NICs of link {name} have their own" if link.nics is not None else ""


def _changed(report: Report, event: Event) -> str:
    """Returns the same for the links and media that an event changes; "" if all their ports are veth
    devices.
    """
    names = select_all(
        event.impair or [], [*report.names.media, *chain(*report.names.links.values())], report.names.links
    )
    if set(names) & set(report.names.media):
        return SHARED
    hit = [
        (n, link) for n, link in report.model.links.items() if set(report.names.links.get(n, ())) & set(names)
    ]
    return next((why for one in hit if (why := _stated(report, *one))), "")


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
    queues = [
        way.queue.discipline(way.rate) for way in ways
        if way is not None and way.queue is not None and len(way.queue.kinds) == 1
    ]  # fmt: skip
    served = {
        mark: {value for queue in queues for band in queue.bands for value in getattr(band, mark)}
        for mark in MARKS
    }
    if any(QUEUE_KINDS[queue.kind].serves_dscp(PlanImpairment(queue=queue)) for queue in queues):
        served["dscp"] = set(range(64))
    machines = [*report.model.nodes.values(), *report.model.groups.values()]
    for software in (one for machine in machines for one in machine.software.values()):
        served["pcp"] |= kind_of(software).serves(software)
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            for label, software in machine.software.items():
                kind = kind_of(software)
                here = (section, name, "software", label, kind.key)
                _marked(report, getattr(software, kind.key, None), here, served, tagged=bool(machine.vlan))


def _marked(
    report: Report, options: object, here: Path, served: dict[str, set[int]], *, tagged: bool
) -> None:
    """Reports a PCP if the node has no `vlan`, and each mark of one piece of software that no queue serves,
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
    wanted = queue.discipline(impairment.rate)
    queue_kind = QUEUE_KINDS[queue.kinds[0]]
    _bands(report, queue_kind, wanted.bands, (*here, queue_kind.kind))
    for fault in queue_kind.faults(PlanImpairment(rate_bps=impairment.rate or 0, queue=wanted)):
        report.add((*here, queue_kind.kind, *fault.at), fault.value, fault.rule, fault.remedy)


def _bands(report: Report, queue_kind: QueueKind, bands: Sequence[Band], path: Path) -> None:
    if queue_kind.bands is None:
        return
    if not LEAST_BANDS <= len(bands) <= queue_kind.bands.most:
        rule = f"has {len(bands)} bands; a queue of this kind has {LEAST_BANDS} to {queue_kind.bands.most}"
        report.add(path, None, rule, "packets of the same treatment share a band")
        return
    rest = [band.name for band in bands if band.rest]
    if not rest:
        rule = "every band names what belongs to it, and nothing takes the rest"
        report.add(path, None, rule, "add a band that names nothing, for example `rest: {}`")
    for name in rest[1:]:
        rule = f"names no packets, as {rest[0]} does: which takes the rest?"
        report.add((*path, name), None, rule, "write `pcp:`, `dscp:` or `port:` at one of them")
    seen: dict[tuple[str, int], str] = {}
    for band in bands:
        for key, values in (("pcp", band.pcp), ("dscp", band.dscp), ("port", band.ports)):
            for value in values:
                first = seen.setdefault((key, value), band.name)
                if first != band.name:
                    rule = f"belongs to {first} already"
                    report.add((*path, band.name, key), value, rule, "name it in one band")
