"""Checks the NICs that a topology names: each is used for one interface only, and no key needs a cable
outside the lab. Whether a NIC exists is checked later, on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...language.source import Path
from ..network import Link
from .report import Report

_IDENT = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}", re.IGNORECASE)
CABLE = "give the link `nics: {a: ..., b: ...}`: the node's port, and the port cabled to it"


def check(report: Report) -> None:
    """Checks segments of `nic`, ends of `nics`, NICs named twice, and links, captures and partitions that
    need both ends of a cable in the lab.
    """
    for name, node in report.model.nodes.items():
        for segment in node.nic or {}:
            if not node.segment:
                rule = f"{name} is on no segment, and links between nodes are wires in memory"
                report.add(("nodes", name, "nic"), None, rule, "write the `segment` that it is in place of")
            elif segment and segment not in node.segment:
                listed = ", ".join(node.segment)
                rule = f"{name} is not on this segment"
                report.add(("nodes", name, "nic", segment), segment, rule, f"write one of its own: {listed}")
    for name, link in report.model.links.items():
        _link(report, name, link)
    _once(report)
    _captures(report)
    _partitions(report)


def _link(report: Report, name: str, link: Link) -> None:
    node, segment = link.between
    if link.nics is None:
        if segment in uncabled(report, node):
            rule = f"{node} has a NIC on {segment}, whose other end is outside the lab"
            report.add(("links", name), None, rule, CABLE)
        return
    path = ("links", name, "nics")
    if node in report.model.groups:
        rule = f"{node} is a group, but a NIC goes into one machine"
        report.add(path, None, rule, "write a node of its own under `nodes:`")
    elif node in report.model.nodes and segment in own(report, node):
        rule = f"{node} names a NIC for {segment} itself"
        report.add(path, None, rule, f"remove `nic:` of {node}: the link's `a` is that interface")


def own(report: Report, node: str) -> set[str]:
    """Returns the segments on which the node's interface is a NIC by its own `nic` key."""
    machine = report.model.nodes.get(node)
    if machine is None:
        return set()
    return {key or machine.segment[0] for key in machine.nic or {} if key or machine.segment}


def uncabled(report: Report, node: str) -> set[str]:
    """Returns the segments on which the node's interface is a NIC without a cable back into the lab."""
    cabled = {
        link.between[1] for link in report.model.links.values() if link.nics and link.between[0] == node
    }
    return own(report, node) - cabled


def _once(report: Report) -> None:
    seen: dict[str, dict[str | None, str]] = {}  # NIC -> host -> path of the key that uses it
    for path, asked, host in _asked(report):
        word = asked.lower() if "." in asked else asked
        known = seen.setdefault(word.removeprefix("0000:"), {})
        other = next((place for there, place in known.items() if host is None or there in (None, host)), None)
        if other is not None and not _IDENT.fullmatch(asked):
            report.add(path, asked, f"is already that of {other}", "give each interface a NIC of its own")
        known.setdefault(host, ".".join(str(part) for part in path))


def _asked(report: Report) -> Iterator[tuple[Path, str, str | None]]:
    """Yields (path, NIC, host) for every key that requests a NIC; host is None if it is not stated."""
    for name, node in report.model.nodes.items():
        for segment, asked in (node.nic or {}).items():
            yield ("nodes", name, "nic", segment) if segment else ("nodes", name, "nic"), asked, node.host
    for name, link in report.model.links.items():
        if link.nics is not None:
            end = report.model.nodes.get(link.between[0])
            host = None if end is None else end.host
            yield ("links", name, "nics", "a"), link.nics.a, host
            yield ("links", name, "nics", "b"), link.nics.b, host


def _captures(report: Report) -> None:
    for name, capture in report.model.captures.items():
        kind, _, target = capture.at.partition(" ")
        machine = report.model.nodes.get(target)
        if kind != "node" or machine is None or machine.kind == "light":
            continue
        if machine.segment and machine.segment[0] in uncabled(report, target):
            rule = f"{target} is a virtual machine whose NIC has no other end in the lab"
            report.add(("captures", name, "at"), capture.at, rule, "capture at another point, or " + CABLE)


def _partitions(report: Report) -> None:
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        for target in event.partition or []:
            if uncabled(report, target):
                rule = f"{target} has a NIC whose other end is outside the lab"
                report.add(("timeline", index, "partition"), target, rule, CABLE)
