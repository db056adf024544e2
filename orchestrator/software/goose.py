"""Defines the keys of GOOSE (IEC 61850-8-1), and checks and plans it: events whose state is repeated in
frames directly above Ethernet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Interface, Payload

from ..language.scalars import Base, Duration, Positive, Targets, text
from ..language.source import Path
from ..language.units import text_ns
from .checking import Checks, Here
from .iec61850.checks import check_fits
from .iec61850.file import Appid, Group, Published, Rules
from .iec61850.frames import HEAD_BYTES, tlv_bytes
from .iec61850.kind import make_kind
from .iec61850.planning import Form, check_mtu, destination
from .kind import Offered
from .placeholders import fill_for
from .scene import Placed, Scene
from .sending import Sending, check_sending, expected_messages, make_flow, rate_words

RULES = Rules("goose", (0x0000, 0x3FFF), "01-0C-CD-01", "gocb_ref", "IEC 61850-8-1")
GUARANTEE = Guarantee("GOOSE", "GOOSE: nothing is guaranteed; each state is sent again and again")
ENTRY_BYTES = 8  # bytes of one value: a BOOLEAN and a quality of 13 bits, each with tag and length
MOST_WAITS = 100
MS_NS = 10**6


class GoosePublish(Published, Sending):
    """Events. Each event changes the state; the publisher sends the state at once, again soon after, and then
    less and less often.
    """

    gocb_ref: str = Field(
        "{node}/LLN0$GO$events",
        min_length=1,
        description="Reference of the control block; may hold {node}, {group}, {index}, {next}, {previous}.",
    )
    dat_set: str = Field(
        "{node}/LLN0$events",
        min_length=1,
        description="Reference of the data set, with the same placeholders.",
    )
    go_id: str = Field(
        "{node}", min_length=1, description="Identifier for human readers, with the same placeholders."
    )
    appid: Appid = Field(
        text("0x0001"),
        description="Application identifier, 0x0000 to 0x3FFF; hexadecimal digits or a number.",
    )
    destination: Group = Field(
        "01-0C-CD-01-00-00", description="Group address, 01-0C-CD-01 and two bytes more."
    )
    entries: Positive = Field(1, le=200, description="States in the data set, each with a quality.")
    retransmit: list[Duration] = Field(
        [text(f"{2 * max(1, 2**n // 2)} ms") for n in range(10)],
        max_length=MOST_WAITS,
        description="Waits after an event, in their order: T1, T1, T2, T3 ...",
    )
    stable: Duration = Field(text("1 s"), description="Wait between all further retransmissions: T0.")
    time_allowed_to_live: Duration | None = Field(
        None,
        description=(
            "timeAllowedtoLive in the messages, whole milliseconds; by default twice the wait until the "
            "next one."
        ),
    )


class GooseOptions(Base):
    """A publisher, or a subscriber to the events of publishers."""

    publish: GoosePublish | None = Field(None, description="The side that sends.")
    subscribe: Targets | None = Field(
        None, description="The side that receives: nodes or groups that publish, all their events."
    )


class Goose(Base):
    """The software key `goose`: a publisher or a subscriber."""

    goose: GooseOptions = Field(description="The side.")


def length_bytes(names: Sequence[str], entries: int) -> int:
    """Returns the greatest length of a GOOSE message above Ethernet, in which all numbers have their full
    length.
    """
    # The header has time allowed to live, stNum, sqNum and confRev; then time, flags and count follow.
    numbers = 4 * tlv_bytes(5) + tlv_bytes(8) + 2 * tlv_bytes(1) + tlv_bytes(2)
    fields = sum(tlv_bytes(len(name)) for name in names) + numbers
    return HEAD_BYTES + tlv_bytes(fields + tlv_bytes(ENTRY_BYTES * entries))


def _check(report: Checks, here: Here, wanted: GoosePublish, path: Path) -> None:
    check_sending(report, here, wanted, path, "leave it out where nothing happens")
    if wanted.burst != 1:
        rule = "changes one state several times at once; only the last change would be visible"
        report.add((*path, "burst"), wanted.burst, rule, "leave it out, or write several publishers")
    waits = [(("retransmit", index), wait) for index, wait in enumerate(wanted.retransmit)]
    for key, wait in [*waits, (("stable",), wanted.stable)]:
        if wait <= 0:
            report.add((*path, *key), "0 s", "is not above zero", 'write for example "2 ms"')
    lives, longest = wanted.time_allowed_to_live, max([*wanted.retransmit, wanted.stable])
    if lives is not None and (lives % MS_NS or not longest < lives < 2**32 * MS_NS):
        rule = f"must be whole milliseconds and longer than the longest wait, {text_ns(longest)}"
        report.add((*path, "time_allowed_to_live"), text_ns(lives), rule, "write more, or leave it out")
    names = (wanted.gocb_ref, wanted.dat_set, wanted.go_id)
    remedy = "write less entries, or a larger `mtu`"
    check_fits(report, here, wanted, length_bytes(names, wanted.entries), (*path, "entries"), remedy)


def _stream(scene: Scene, placed: Placed, wanted: GoosePublish) -> dict[str, Any]:
    name = fill_for(scene, placed, wanted.gocb_ref)
    return {"to": destination(wanted), "gocb_ref": name, "conf_rev": wanted.conf_rev}


def _publish(scene: Scene, placed: Placed, wanted: GoosePublish, card: Interface) -> dict[str, Any]:
    stream = _stream(scene, placed, wanted)
    names = [fill_for(scene, placed, name) for name in (wanted.dat_set, wanted.go_id)]
    check_mtu(card, placed.node, length_bytes([stream["gocb_ref"], *names], wanted.entries))
    return {
        **stream,
        "interface": card.device,
        "dat_set": names[0],
        "go_id": names[1],
        "entries": wanted.entries,
        "retransmit_ns": wanted.retransmit,
        "stable_ns": wanted.stable,
        "time_allowed_to_live_ms": (wanted.time_allowed_to_live or 0) // MS_NS,
    }


def _heard(other: Placed, _flow: Flow) -> dict[str, Any]:
    return {"publisher": other.endpoint}


def _flow(scene: Scene, placed: Placed, wanted: GoosePublish, deliveries: tuple[Delivery, ...]) -> Flow:
    """Returns the flow of a publisher, in which each event is one message."""
    payload = Payload("dataset", ENTRY_BYTES * wanted.entries)
    return make_flow(scene, placed, wanted, payload, pattern="push", deliveries=deliveries)


def _words(stream: Mapping[str, Any], flows: Sequence[Flow]) -> str:
    return "; ".join([f"GOOSE {stream['gocb_ref']}", *(f"events {rate_words(flow)}" for flow in flows)])


def _packets(stream: Mapping[str, Any], flow: Flow) -> Iterator[tuple[float, int]]:
    """Yields (count, bytes) of packets: each event with its retransmissions, and the repetitions of the
    stable state from beginning to end.
    """
    length = length_bytes((stream["gocb_ref"], stream["dat_set"], stream["go_id"]), stream["entries"])
    yield expected_messages(flow) * (1 + len(stream["retransmit_ns"])), length
    yield (flow.stop_ns - flow.start_ns) / stream["stable_ns"], length


def _offers(stream: Mapping[str, Any], flow: Flow) -> Offered:
    """Returns the offered load of a publisher: each event with its repetitions, which may overlap those of
    the previous event.
    """
    length = length_bytes((stream["gocb_ref"], stream["dat_set"], stream["go_id"]), stream["entries"])
    each = 1 + len(stream["retransmit_ns"])
    events = max((rate.per_s for rate in flow.schedule.rates), default=0.0) if flow.schedule else 0.0
    return Offered(
        length,
        over_ip=False,
        pcp=(stream["to"]["tag"] or (0, None))[1],
        per_s=each * events + 1e9 / stream["stable_ns"],
        burst=2 * each,
    )


KIND = make_kind(
    RULES,
    Form(GUARANTEE, _stream, _publish, _heard, _flow),
    model=Goose,
    what="GOOSE",
    example="goose: {publish: {rate: 1 /s}}",
    titles={"GooseOptions": "software.NAME.goose: GOOSE", "GoosePublish": "goose.publish"},
    check=_check,
    words=_words,
    packets=_packets,
    offers=_offers,
)
