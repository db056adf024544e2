"""Room of GOOSE (IEC 61850-8-1): events whose state is sent again and again right above Ethernet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from ..language.scalars import Base, Duration, Positive, Targets, text
from ..language.source import Path
from ..language.units import text_ns
from ..model import Delivery, Flow, Payload, Promise, Software
from . import iec61850
from .checking import Checks, Here
from .iec61850 import Published, Rules
from .kind import Costs, Kind, Ledger, Planned
from .scene import Placed, Scene
from .sending import Sending, check_sending, expected_messages, make_flow, rate_words

RULES = Rules("goose", (0x0000, 0x3FFF), "01-0C-CD-01", "gocb_ref", "IEC 61850-8-1")
PROMISE = Promise("GOOSE", "GOOSE: nothing is promised; each state is sent again and again")
ENTRY_BYTES = 8  # a BOOLEAN and a quality of 13 bits, each with tag and length
MOST_WAITS = 100
MS_NS = 10**6


class GoosePublish(Published, Sending):
    """Events: each changes the state, which is sent at once, again soon, then less and less often."""

    gocb_ref: str = Field(
        "{node}/LLN0$GO$events",
        min_length=1,
        description="Reference of the control block; may hold {node}, {group}, {index}, {next}, {previous}.",
    )
    dat_set: str = Field("{node}/LLN0$events", min_length=1, description="Reference of the data set; as it.")
    go_id: str = Field("{node}", min_length=1, description="Its name for people; as it.")
    appid: iec61850.Appid = Field(
        text("0x0001"),
        description="Application identifier, 0x0000 to 0x3FFF; hexadecimal digits or a number.",
    )
    destination: iec61850.Group = Field(
        "01-0C-CD-01-00-00", description="Group address, 01-0C-CD-01 and two bytes more."
    )
    entries: Positive = Field(1, le=200, description="States in the data set, each with a quality.")
    retransmit: list[Duration] = Field(
        [text(f"{2 * max(1, 2**n // 2)} ms") for n in range(10)],
        max_length=MOST_WAITS,
        description="Waits after an event, in their order: T1, T1, T2, T3 ...",
    )
    stable: Duration = Field(text("1 s"), description="The wait for ever after: T0.")
    time_allowed_to_live: Duration | None = Field(
        None, description="What messages say, whole milliseconds; by default twice the wait until the next."
    )


class GooseOptions(Base):
    """A publisher, or who takes the events of publishers."""

    publish: GoosePublish | None = Field(None, description="The side that sends.")
    subscribe: Targets | None = Field(
        None, description="The side that receives: nodes or groups that publish, all their events."
    )


class Goose(Base):
    """One side of GOOSE."""

    goose: GooseOptions = Field(description="The side.")


def length_bytes(names: Sequence[str], entries: int) -> int:
    """Of a frame above Ethernet at most: its numbers as long as they may be."""
    tlv = iec61850.tlv_bytes
    numbers = 4 * tlv(5) + tlv(8) + 2 * tlv(1) + tlv(2)  # lives, stNum, sqNum, confRev; time; flags; count
    fields = sum(tlv(len(name)) for name in names) + numbers
    return iec61850.HEAD_BYTES + tlv(fields + tlv(ENTRY_BYTES * entries))


def _check(report: Checks, here: Here, model: Goose) -> None:
    iec61850.check(report, here, model.goose, RULES)
    if (wanted := model.goose.publish) is not None:
        path = (*here.path, RULES.kind, "publish")
        check_sending(report, here, wanted, path, "leave it out where nothing happens")
        _check_events(report, here, wanted, path)


def _check_events(report: Checks, here: Here, wanted: GoosePublish, path: Path) -> None:
    if wanted.burst != 1:
        rule = "changes one state several times at once, of which nobody would see but the last"
        report.add((*path, "burst"), wanted.burst, rule, "leave it out, or write several publishers")
    waits = [(("retransmit", index), wait) for index, wait in enumerate(wanted.retransmit)]
    for key, wait in [*waits, (("stable",), wanted.stable)]:
        if wait <= 0:
            report.add((*path, *key), "0 s", "is no wait at all", 'write for example "2 ms"')
    lives, longest = wanted.time_allowed_to_live, max([*wanted.retransmit, wanted.stable])
    if lives is not None and (lives % MS_NS or not longest < lives < 2**32 * MS_NS):
        rule = f"must be whole milliseconds and longer than the longest wait, {text_ns(longest)}"
        report.add((*path, "time_allowed_to_live"), text_ns(lives), rule, "write more, or leave it out")
    names = (wanted.gocb_ref, wanted.dat_set, wanted.go_id)
    remedy = "write less entries, or a larger `mtu`"
    iec61850.check_fits(report, here, wanted, length_bytes(names, wanted.entries), (*path, "entries"), remedy)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    heard = iec61850.receivers(scene, RULES.kind, all_of_it)
    for placed in all_of_it:
        wanted: GoosePublish | None = placed.model.goose.publish
        if wanted is None:
            streams = list(_streams(scene, placed))
            yield Planned(_software(scene, placed, {"publish": None, "subscribe": streams}))
            continue
        card = iec61850.interface(scene, placed, wanted)
        names = [iec61850.filled(scene, placed.node, name) for name in (wanted.dat_set, wanted.go_id)]
        stream = _stream(scene, placed, wanted)
        length = length_bytes([stream["gocb_ref"], *names], wanted.entries)
        iec61850.check_mtu(card, placed.node, length)
        content = {
            "interface": card.device,
            "dat_set": names[0],
            "go_id": names[1],
            "entries": wanted.entries,
            "retransmit_ns": wanted.retransmit,
            "stable_ns": wanted.stable,
            "time_allowed_to_live_ms": (wanted.time_allowed_to_live or 0) // MS_NS,
        }
        to = heard.get((placed.node, placed.name), ())
        receivers = {f"subscribers of {placed.endpoint}": to} if to else {}
        flow = _flow(scene, placed, wanted, tuple(Delivery(one, PROMISE) for one in receivers))
        spec = {"publish": {**stream, **content}, "subscribe": []}
        yield Planned(_software(scene, placed, spec), (flow,), receivers)


def _software(scene: Scene, placed: Placed, spec: dict[str, Any]) -> Software:
    session = iec61850.session(scene, placed)
    role: Any = "server" if session.listens else "client"
    return Software(placed.name, role, placed.kind, session=session, spec=spec)


def _stream(scene: Scene, placed: Placed, wanted: GoosePublish) -> dict[str, Any]:
    """What both sides are told of it."""
    name = iec61850.filled(scene, placed.node, wanted.gocb_ref)
    return {"to": iec61850.destination(wanted), "gocb_ref": name, "conf_rev": wanted.conf_rev}


def _streams(scene: Scene, placed: Placed) -> Iterator[dict[str, Any]]:
    """All that a subscriber takes; `flow` is a name until the flows have numbers."""
    for other in iec61850.publishers(scene, RULES.kind, placed.model.goose.subscribe):
        wanted: GoosePublish = other.model.goose.publish
        card = iec61850.interface(scene, other, wanted)
        yield {
            **_stream(scene, other, wanted),
            "flow": _flow(scene, other, wanted, ()).name,
            "publisher": other.endpoint,
            "interface": iec61850.receiving(scene, placed.node, card, wanted),
        }


def _numbered(software: Software, ledger: Ledger) -> Software:
    streams = [{**stream, "flow": ledger.numbers[stream["flow"]]} for stream in software.spec["subscribe"]]
    return replace(software, spec={**software.spec, "subscribe": streams})


def _flow(scene: Scene, placed: Placed, wanted: GoosePublish, deliveries: tuple[Delivery, ...]) -> Flow:
    """An event is a message."""
    payload = Payload("dataset", ENTRY_BYTES * wanted.entries)
    return make_flow(scene, placed, wanted, payload, pattern="push", deliveries=deliveries)


def _words(software: Software, flows: Sequence[Flow]) -> str:
    if (stream := software.spec["publish"]) is None:
        return f"GOOSE, takes {len(software.spec['subscribe'])} streams"
    return "; ".join([f"GOOSE {stream['gocb_ref']}", *(f"events {rate_words(flow)}" for flow in flows)])


def _costs(software: Software, flows: Sequence[Flow]) -> Costs:
    """Each event with its curve, and the stable state's messages from beginning to end."""
    if (stream := software.spec["publish"]) is None:
        return Costs()
    names = (stream["gocb_ref"], stream["dat_set"], stream["go_id"])
    size = iec61850.ETHERNET_BYTES + (iec61850.TAG_BYTES if stream["to"]["tag"] else 0)
    size += length_bytes(names, stream["entries"])
    copies = 1 + len(stream["retransmit_ns"])
    packets = [(expected_messages(flow) * copies, size) for flow in flows]
    packets += [((flow.stop_ns - flow.start_ns) / stream["stable_ns"], size) for flow in flows]
    return Costs(one_copy=True, packets=tuple(packets))


KIND = Kind(
    name="goose",
    key="goose",
    model=Goose,
    what="GOOSE",
    example="goose: {publish: {rate: 1 /s}}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    numbered=_numbered,
    ramp=lambda model: None if model.goose.publish is None else 1,
    titles={"GooseOptions": "software.NAME.goose: GOOSE", "GoosePublish": "goose.publish"},
)
