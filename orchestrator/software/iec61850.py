"""What software right above Ethernet has in common: where frames go, who hears them, the rules of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ..language.scalars import Base, Name, fail
from ..language.source import Path
from ..model import Interface, Session
from .checking import Checks, Here
from .kind import SoftwareError
from .placeholders import PLACEHOLDERS, fill, unknown
from .scene import Placed, Scene

HEAD_BYTES = 8  # APPID, length, two reserved words: IEC 61850-9-2, annex A
ETHERNET_BYTES = 14
TAG_BYTES = 4
MOST_NAME_BYTES = {"sv_id": 34, "gocb_ref": 65}  # 9-2LE; an object reference of IEC 61850-8-1
_GROUP = re.compile(r"01([:-])0C\1CD\1(0[14])\1([0-9A-F]{2})\1([0-9A-F]{2})", re.IGNORECASE)


def _group(value: Any) -> str:
    """A group of these protocols, with dashes."""
    if isinstance(value, str) and _GROUP.fullmatch(value):
        return value.upper().replace(":", "-")
    raise fail("is no group address of IEC 61850", 'write for example "01-0C-CD-04-00-01"')


def _appid(value: Any) -> int:
    """As a number, or as the standards write it."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9A-Fa-f]{1,4}", value):
        return int(value, 16)
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail("is no APPID", "write four hexadecimal digits, for example 0x4001")
    return value


_APPIDS = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^0x[0-9A-Fa-f]{1,4}$"}]}
Appid = Annotated[int, BeforeValidator(_appid), WithJsonSchema({"title": "APPID", **_APPIDS})]
Group = Annotated[
    str,
    BeforeValidator(_group),
    WithJsonSchema({"type": "string", "title": "group", "pattern": _GROUP.pattern}),
]


class Published(Base):
    """What all that is sent right above Ethernet says of itself."""

    segment: Name | None = Field(None, description="Where it is sent; by default the node's first segment.")
    appid: Appid = Field(description="Application identifier.")
    destination: Group = Field(description="Group address.")
    vlan: int | None = Field(
        None, ge=0, le=4094, description="A tag with this VLAN; 0: one that only says the priority."
    )
    pcp: int | None = Field(None, ge=0, le=7, description="Priority in the tag (4).")
    conf_rev: int = Field(1, ge=0, lt=2**32, description="Revision of the configuration.")


class Subscribed(Base):
    """The side that receives."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs from one protocol to the other."""

    kind: str  # of software, and its key in the file
    appids: tuple[int, int]  # the first and the last
    group: str  # how its groups begin
    name: str  # key of what tells one stream from another, beside the APPID
    standard: str


def options_of(model: Any, kind: str) -> Any:
    """What stands below the key of the kind; None for software of another."""
    return getattr(model, kind.replace("-", "_"), None)


def check(report: Checks, here: Here, options: Any, rules: Rules) -> None:
    """The rules of both sides."""
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
    """No two publishers of one name and APPID are heard on one segment; the later one in the file is told."""
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
    """`length`: bytes right above Ethernet. The frame must fit where it is sent and wherever it gets to."""
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


def filled(scene: Scene, node: str, text: str) -> str:
    """A text of the file with the values of a node."""
    return _filled(text, node, scene.group_of[node], scene.index_of[node], scene.count(node))


def interface(scene: Scene, placed: Placed, wanted: Published) -> Interface:
    """Where a publisher sends."""
    cards = scene.interfaces[placed.node]
    return next(card for card in cards if wanted.segment in (None, card.segment))


def check_mtu(card: Interface, node: str, length: int) -> None:
    """Of a node's own interface, which may be smaller than its segment's; raises SoftwareError."""
    if length > card.mtu:
        rule = f"frames of {length} bytes above Ethernet do not fit the MTU of {card.name}, {card.mtu} bytes"
        raise SoftwareError(node, rule, "write a larger `mtu:`, or less in a frame")


def receiving(scene: Scene, node: str, sent_on: Interface, wanted: Published) -> str:
    """The interface by which a node hears a publisher: its tagged one where the frames have its tag."""
    subnet = scene.subnets[sent_on.segment]
    card = next(one for one in scene.interfaces[node] if scene.subnets[one.segment] == subnet)
    tagged = wanted.vlan and card.name == f"{card.device}.{wanted.vlan}"
    return card.name if tagged else card.device


def publishers(scene: Scene, kind: str, names: Iterable[str]) -> Iterator[Placed]:
    """Software that publishes on these nodes and groups, each once."""
    for node in dict.fromkeys(node for name in names for node in scene.machines(name)):
        for other in scene.at(node, kind):
            if options_of(other.model, kind).publish is not None:
                yield other


def receivers(
    scene: Scene, kind: str, all_of_it: Sequence[Placed]
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """By node and name of each publisher, who subscribes to it."""
    found: dict[tuple[str, str], list[str]] = {}
    for placed in all_of_it:
        for other in publishers(scene, kind, options_of(placed.model, kind).subscribe or ()):
            found.setdefault((other.node, other.name), []).append(placed.endpoint)
    return {key: tuple(names) for key, names in found.items()}


def destination(wanted: Published) -> dict[str, Any]:
    """Where frames go, as the agent is told."""
    group = [int(part, 16) for part in wanted.destination.split("-")]
    tag = None if wanted.vlan is None else [wanted.vlan, 4 if wanted.pcp is None else wanted.pcp]
    return {"group": group, "appid": wanted.appid, "tag": tag}


def session(scene: Scene, placed: Placed) -> Session:
    """From its turn in the ramp where it sends, from the start where it receives."""
    if options_of(placed.model, placed.kind).publish is None:
        return Session(placed.endpoint, 0, scene.end_ns, listens=True)
    return Session(placed.endpoint, placed.connect_ns, scene.end_ns)


def tlv_bytes(content: int) -> int:
    """Of a value with its tag and length (ITU-T X.690)."""
    return content + (2 if content < 0x80 else 3 if content < 0x100 else 4)
