"""Checks half-duplex links and segments: one transmitter with a rate, equal directions, and no NICs."""

from __future__ import annotations

from ...language.source import Path
from ..impairments import Impairment
from ..network import Link, Segment
from . import nics
from .report import Report


def check(report: Report) -> None:
    """Reports half-duplex links and segments without a rate or at NICs, half-duplex links with different
    directions, and a medium at a full-duplex segment.
    """
    for name, link in report.model.links.items():
        if link.duplex == "half":
            _link(report, name, link)
    for name, segment in report.model.segments.items():
        _segment(report, name, segment)


def _link(report: Report, name: str, link: Link) -> None:
    """Reports a half-duplex link with different impairments, without a rate, or through NICs."""
    forward, reverse = link.forward or link.both, link.reverse or link.both
    path, out = _asked(report, ("links", name), forward)
    _no_nics(report, link.nics is not None or _has_nic(report, *link.between), path, f"{out}, or the NICs")
    if _values(forward) != _values(reverse):
        rule = "shares one transmitter between both directions, and they are given different impairments"
        report.add(path, "half", rule, f"write `both:`, or {out}")
    elif forward is None or not forward.rate:
        rule = "shares a transmitter that has no rate"
        report.add(path, "half", rule, f"write `both: {{rate: ...}}`, or {out}")


def _values(impairment: Impairment | None) -> object:
    """Returns the values of an impairment without the name of its profile, because two profiles may set the
    same values; None for no impairment.
    """
    return None if impairment is None else impairment.model_dump(exclude={"profile"})


def _segment(report: Report, name: str, segment: Segment) -> None:
    path, out = _asked(report, ("segments", name), segment.medium)
    if segment.duplex == "full":
        if segment.medium is not None and segment.medium.model_fields_set - {"profile"}:
            rule = "is what the members of a half duplex segment share, and this one is full duplex"
            report.add(
                ("segments", name, "medium"), None, rule, "write `duplex: half`, or use a link's `both:`"
            )
        return
    wired = any(link.nics is not None and name in link.between for link in report.model.links.values())
    cards = any(_has_nic(report, node, name) for node in report.model.nodes)
    _no_nics(report, wired or cards, path, f"{out}, or the NICs")
    if segment.medium is None or not segment.medium.rate:
        rule = "shares a transmitter that has no rate"
        report.add(path, "half", rule, f"write `medium: {{rate: ...}}`, or {out}")


def _no_nics(report: Report, found: bool, path: Path, remedy: str) -> None:
    if found:
        rule = "stands at a link through NICs, each of which has a transmitter of its own"
        report.add(path, "half", rule, remedy)


def _has_nic(report: Report, node: str, segment: str) -> bool:
    """Returns whether the node's interface on the segment is a NIC of the machine."""
    return node in report.model.nodes and segment in nics.own(report, node)


def _asked(report: Report, path: Path, way: Impairment | None) -> tuple[Path, str]:
    """Returns the path of the key that makes the link half duplex (in the file or by a profile), and the way
    to remove it.
    """
    given = report.document.data
    for part in path:
        given = given[part]
    if "duplex" in given or way is None or way.profile is None:
        return (*path, "duplex"), "leave out `duplex:`"
    return path, f"write `duplex: full` (profile {way.profile} is half duplex)"
