"""Checks trunks: links between segments that carry further pairs of segments, each with a VLAN tag."""

from __future__ import annotations

from ...language.source import Path
from ..network import Link
from ..nodes import vlans_of
from .report import Report


def check(report: Report) -> None:
    """Reports trunks that do not join two segments, or beside half duplex, NICs, spanning trees, virtual
    machines or several hosts; pairs that do not fit; tagged nodes on a trunk's segments; and events that cut
    such a segment off.
    """
    carrying = {name: link for name, link in report.model.links.items() if link.trunk}
    for name, link in carrying.items():
        _link(report, name, link)
        for vlan, pair in link.trunk.items():
            _pair(report, ("links", name, "trunk", vlan), link, pair)
    if carrying:
        _nodes(report, carrying)
        _events(report, carrying)


def _link(report: Report, name: str, link: Link) -> None:
    path = ("links", name, "trunk")
    if not set(link.between) <= set(report.model.segments):
        rule = "is of a link between two segments, which are those of its frames without a tag"
        report.add(path, None, rule, "write `between: [SEGMENT, SEGMENT]`")
    for key, there in (("duplex: half", link.duplex == "half"), ("nics", link.nics is not None)):
        if there:
            report.add(path, None, f"stands beside `{key}`", f"leave `{key}` or the trunk out")
    if report.model.hosts or any(node.kind == "vm" for node in report.names.nodes.values()):
        rule = "is of labs of light nodes on one machine"
        report.add(path, None, rule, "use a link for each pair there")


def _pair(report: Report, path: Path, link: Link, pair: list[str]) -> None:
    for place, segment in enumerate(pair):
        if segment not in report.model.segments:
            report.unknown((*path, place), segment, "segment", report.declared("segments"))
            return
    if pair[0] == pair[1]:
        report.add(path, pair[0], "joins a segment to itself", "name two segments")
    if set(pair) & set(link.between):
        rule = "is a segment of the link's frames without a tag already"
        report.add(path, None, rule, "name a pair of other segments")
    mtus = {report.model.segments[one].mtu for one in (*pair, *link.between) if one in report.model.segments}
    if len(mtus) > 1:
        report.add(path, None, "has another MTU than the link's segments", "give all of them one `mtu:`")


def _segments(link: Link) -> set[str]:
    return {*link.between, *(one for pair in link.trunk.values() for one in pair)}


def _nodes(report: Report, carrying: dict[str, Link]) -> None:
    every = {segment: name for name, link in carrying.items() for segment in _segments(link)}
    for segment in every:
        if segment in report.model.segments and report.model.segments[segment].stp:
            rule = f"is on the trunk {every[segment]}, whose tags spanning trees do not see"
            report.add(("segments", segment, "stp"), None, rule, "leave `stp` or the trunk out")
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            for segment in vlans_of(machine).keys() & every.keys():
                rule = (
                    f"is a tag of the node's own on {segment}, whose frames the trunk {every[segment]} tags"
                )
                report.add((section, name, "vlan"), None, rule, "leave one of the two out")


def _events(report: Report, carrying: dict[str, Link]) -> None:
    every = {segment for link in carrying.values() for segment in _segments(link)}
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        if set(event.partition or []) & every or getattr(event, "split", None):
            rule = "would cut a trunk, and with it segments that it does not name"
            report.add(("timeline", index), None, rule, "cut the link itself by `link-down`")
