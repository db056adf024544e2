"""Checks publishers and subscribers of IEC 61850: group addresses, identifiers, unique names, and
receivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...language.source import Path
from ..checking import Checks, Here
from ..placeholders import PLACEHOLDERS, fill, unknown
from .file import Published, Rules, options_of

# largest length: 9-2LE, and that of an object reference in IEC 61850-8-1
MOST_NAME_BYTES = {"sv_id": 34, "gocb_ref": 65}


def check(report: Checks, here: Here, options: Any, rules: Rules) -> None:
    """Reports software without exactly one of publish and subscribe. For a publisher it reports an APPID,
    group address, tag, segment or name that is invalid or not unique. For a subscriber it reports names of
    nodes that do not publish, are the node itself, or are not connected to it without a router.
    """
    path = (*here.path, rules.kind)
    if (options.publish is None) == (options.subscribe is None):
        rule = "has exactly one of the keys publish and subscribe"
        report.add(path, None, rule, "write `publish:` where it sends, `subscribe: NODE` where it receives")
    elif options.publish is not None:
        _check_publisher(report, here, options.publish, (*path, "publish"), rules)
    else:
        _check_subscriber(report, here, options.subscribe, (*path, "subscribe"), rules)


def _check_publisher(report: Checks, here: Here, wanted: Published, path: Path, rules: Rules) -> None:
    first, last = rules.appids
    if not first <= wanted.appid <= last:
        rule = f"an APPID of {rules.standard} is from 0x{first:04X} to 0x{last:04X}"
        report.add((*path, "appid"), _hex(wanted.appid), rule, f"write for example 0x{first + 1:04X}")
    if not wanted.destination.startswith(rules.group):
        rule = f"a group of {rules.standard} begins with {rules.group}"
        report.add(
            (*path, "destination"), wanted.destination, rule, f'write for example "{rules.group}-00-01"'
        )
    if wanted.pcp is not None and wanted.vlan is None:
        rule = "is of a tag, and these frames have none"
        report.add((*path, "pcp"), wanted.pcp, rule, "write `vlan:` beside it; 0 is no VLAN, but a tag")
    if wanted.segment is not None and wanted.segment not in here.segments:
        listed = ", ".join(here.segments) or "none"
        rule = "is no segment of this node"
        report.add((*path, "segment"), wanted.segment, rule, f"write one of its own: {listed}")
    elif not here.segments:
        report.add(
            path, None, "is sent on a segment, and this node is on none", "write `segment:` at the node"
        )
    else:
        _check_name(report, here, wanted, path, rules)


def _check_name(report: Checks, here: Here, wanted: Published, path: Path, rules: Rules) -> None:
    text, where = getattr(wanted, rules.name), (*path, rules.name)
    if missing := unknown(text):
        listed = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        report.add(where, text, f"no placeholder is called {{{missing[0]}}}", f"use one of {listed}")
        return
    most = MOST_NAME_BYTES[rules.name]
    for node in here.nodes:
        name = _filled(text, node, *report.member(node))
        if not (name.isascii() and name.isprintable() and 0 < len(name) <= most):
            rule = f"is a text of 1 to {most} printable ASCII characters"
            report.add(where, name, rule, "write a shorter one, of letters and digits")
            return
    _check_only(report, here, wanted, where, rules)


def _check_only(report: Checks, here: Here, wanted: Published, where: Path, rules: Rules) -> None:
    """Reports a publisher if an earlier one with the same name and APPID sends on a segment that its frames
    reach.
    """
    seen: dict[tuple[int, str], str] = {}
    reached = report.bridged([wanted.segment or here.segments[0]])
    for node in report.everyone if reached else ():
        for label, model in report.programs(node).items():
            other = getattr(options_of(model, rules.kind), "publish", None)
            if other is None or not (on := other.segment or next(iter(report.segments(node)), "")):
                continue
            if on not in (reached or ()) or unknown(getattr(other, rules.name)):
                continue
            name = _filled(getattr(other, rules.name), node, *report.member(node))
            before = seen.setdefault((other.appid, name), node)
            if (node, label) != (before, label) and node in here.nodes and other is wanted:
                rule = f"is {before}'s too, with APPID {_hex(wanted.appid)} on a segment that both reach"
                report.add(where, name, rule, "write {index} or {node} in it, or another `appid`")
                return


def _check_subscriber(report: Checks, here: Here, names: Sequence[str], path: Path, rules: Rules) -> None:
    ours = report.bridged(here.segments)
    for index, name in enumerate(names):
        where = (*path, index) if len(names) > 1 else path
        for node in report.machines(where, name):
            if node in here.nodes:
                report.add(where, name, "subscribes to itself", "name other nodes")
                break
            published = [one for one in map(_publish_of(rules), report.programs(node).values()) if one]
            if not published:
                rule = f"no {rules.kind} software of {node} publishes"
                report.add(
                    where, name, rule, f"write `software: {{out: {{{rules.kind}: {{publish: ...}}}}}}` there"
                )
                break
            theirs = {one.segment or next(iter(report.segments(node)), "") for one in published}
            if ours is not None and not theirs <= ours:
                rule = f"no segment or link joins it to {node}; these frames pass no router"
                report.add(where, name, rule, "give both a segment, or join their segments by a link")
                break


def _publish_of(rules: Rules) -> Any:
    return lambda model: getattr(options_of(model, rules.kind), "publish", None)


def check_fits(report: Checks, here: Here, wanted: Published, length: int, path: Path, remedy: str) -> None:
    """Reports a frame that exceeds the MTU of a segment it reaches; `length` is in bytes above Ethernet."""
    segment = wanted.segment or next(iter(here.segments), "")
    for name in sorted(report.bridged([segment]) or ()):
        mtu = report.mtu(name)
        if mtu is not None and length > mtu:
            rule = f"makes frames of {length} bytes above Ethernet, more than the MTU of {name}, {mtu}"
            report.add(path, None, rule, remedy)
            return


def _hex(value: int) -> str:
    return f"0x{value:04X}" if value >= 0 else str(value)


def _filled(text: str, node: str, group: str, index: int, count: int) -> str:
    return fill(text, node=node, group=group, index=index, count=count)
