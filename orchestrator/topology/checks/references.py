"""Checks that capture points name targets of the file, and that the campaign block names its parameters."""

from __future__ import annotations

from .report import Report


def check_captures(report: Report) -> None:
    """Reports capture points whose node, segment or link does not exist, filters that begin with "-", and
    bounds of captures that are sent elsewhere. A target that may belong to a part with a problem already is
    not reported.
    """
    nodes = set(report.names.nodes) | report.declared("nodes")
    known = {"node": nodes, "segment": report.declared("segments"), "link": _links(report)}
    for name, capture in report.model.captures.items():
        if capture.filter.startswith("-"):
            rule = "is an option of tcpdump, not a filter"
            report.add(
                ("captures", name, "filter"), capture.filter, rule, 'write for example "tcp port 1883"'
            )
        if capture.to is not None:
            for key, given in (("limit", capture.limit is not None), ("keep", not capture.keep)):
                if given:
                    rule = "is for a file of the run directory, and this capture goes elsewhere"
                    report.add(("captures", name, key), None, rule, "leave it out, or leave out `to`")
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


def check_campaign(report: Report) -> None:
    """Reports factors and parameters of the campaign block that are not declared, unless it names topologies,
    and names that are both; the levels are checked when the cells are loaded.
    """
    block = report.model.campaign
    if block is None:
        return
    known = report.declared("parameters")
    for key in ("factors", "parameters"):
        for name in getattr(block, key):
            if block.topologies is None and name not in known:
                report.unknown(("campaign", key, name), name, "parameter", known)
    for name in block.factors.keys() & block.parameters.keys():
        report.add(("campaign", "parameters", name), None, "is a factor already", "remove one of them")
