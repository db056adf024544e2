"""Checks `split` events: sets of names that exist, apart from one another, with links between them."""

from __future__ import annotations

from ...language.source import Path
from ..document import Event
from ..partitions import cut_by, members_of
from ..selection import select_all
from .report import Report


def check(report: Report, event: Event, path: Path) -> None:
    """Reports names that do not exist, members of two sets, sets without a link between them, and sets that
    the cut would tear apart. Reports only the first kind of these mistakes that occurs.
    """
    place = (*path, "split")
    if _unknown(report, event, place) or _twice(report, event, place):
        return
    found = cut_by(event, report.model, report.names)
    if not found.links:
        rule = "no link lies between these sets, and nothing would be cut"
        report.add(place, None, rule, "name sets that reach each other")
    elif found.torn is not None:
        rule = f"{found.torn[0]} and {found.torn[1]} of one set reach each other only through the cut"
        remedy = "give each set a segment of its own and join them by a link, or write `partition: NODE`"
        report.add(place, None, rule, remedy)


def _unknown(report: Report, event: Event, place: Path) -> bool:
    known = {*report.names.nodes, *report.names.groups, *report.model.segments}
    wrong = False
    for index, one in enumerate(event.split or []):
        for target in one:
            nodes = select_all([target], list(report.names.nodes), report.names.groups)
            if not nodes and target not in report.model.segments:
                report.unknown((*place, index), target, "node, group or segment", known)
                wrong = True
    return wrong


def _twice(report: Report, event: Event, place: Path) -> bool:
    seen: set[str] = set()
    for index, one in enumerate(event.split or []):
        members = members_of(one, report.model, report.names)
        if both := sorted(seen & set(members)):
            report.add((*place, index), both[0], "is in two sets", "name it in one of them")
            return True
        seen.update(members)
    return False
