"""Checks capture points: their targets exist, and their filters are no options of tcpdump."""

from __future__ import annotations

from .report import Report


def check(report: Report) -> None:
    """Reports capture points whose node, segment or link does not exist, and filters that begin with "-". A
    target that may belong to a part with a problem already is not reported.
    """
    nodes = set(report.names.nodes) | report.declared("nodes")
    known = {"node": nodes, "segment": report.declared("segments"), "link": _links(report)}
    for name, capture in report.model.captures.items():
        if capture.filter.startswith("-"):
            rule = "is an option of tcpdump, not a filter"
            report.add(
                ("captures", name, "filter"), capture.filter, rule, 'write for example "tcp port 1883"'
            )
        kind, target = capture.at.split(" ")
        if target not in known[kind] and not _excused(report, kind, target):
            report.unknown(("captures", name, "at"), target, kind, known[kind])


def _links(report: Report) -> set[str]:
    return {name for names in report.names.links.values() for name in names}


def _excused(report: Report, kind: str, target: str) -> bool:
    """Returns whether the target may belong to a part of the file that already has a problem."""
    if kind == "node":
        return any(target.rstrip("0123456789") == group for group in report.broken("groups"))
    return kind == "link" and any(target.startswith(link) for link in report.broken("links"))
