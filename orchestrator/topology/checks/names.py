"""Checks that names are unique and that nodes refer to existing segments."""

from __future__ import annotations

from ...language.source import Path
from .report import Report


def check(report: Report) -> None:
    """Reports names used twice, segments of nodes that are unknown or named twice, and a file without
    nodes.
    """
    seen: dict[str, str] = {}
    for section in ("segments", "nodes", "groups"):
        for name in getattr(report.model, section):
            _once(report, seen, name, (section, name), section[:-1])
    for group, members in report.names.groups.items():
        for member in members:
            _once(report, seen, member, ("groups", group), f"member of group {group}")
    _segments(report)
    if not (report.declared("nodes") or report.declared("groups")):
        report.add((), None, "describes no node", "write a `nodes:` or a `groups:` section")


def _once(report: Report, seen: dict[str, str], name: str, path: Path, what: str) -> None:
    if name in seen:
        report.add(path, name, f"this name is already that of a {seen[name]}", "rename one of them")
    seen.setdefault(name, what)


def _segments(report: Report) -> None:
    known = report.declared("segments")
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            path = (section, name, "segment")
            for segment in machine.segment:
                if segment not in known:
                    report.unknown(path, segment, "segment", known)
            if len(set(machine.segment)) < len(machine.segment):
                report.add(
                    path, machine.segment, "names a segment twice", "a node has one interface on a segment"
                )
