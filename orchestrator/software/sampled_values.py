"""Room of sampled values (IEC 61850-9-2): streams of samples right above Ethernet, and who takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from ..language.scalars import Base, Duration, Frequency, Moment, Name, Positive, Targets, text
from ..language.source import Path
from ..language.units import text_ns
from ..model import Delivery, Flow, Payload, Promise, Software
from . import iec61850
from .checking import Checks, Here
from .iec61850 import Published, Rules
from .kind import Costs, Kind, Ledger, Planned, SoftwareError
from .scene import Placed, Scene
from .sending import RateStep, Sending, expected_messages, make_flow

RULES = Rules("sampled-values", (0x4000, 0x7FFF), "01-0C-CD-04", "sv_id", "IEC 61850-9-2")
PROMISE = Promise("SV", "SV: nothing is promised")
SECOND_NS = 10**9
MOST_SAMPLES = 1 << 16  # a second: smpCnt has 16 bits
PHSMEAS_BYTES = 64  # eight values of four bytes, each with a quality of four: 9-2LE, section 7.1.4
FLOAT_BYTES = 4


class SvPublish(Published):
    """One stream: samples at even times, the first of each second with smpCnt 0."""

    sv_id: str = Field(
        min_length=1,
        description="Name of the stream; may hold {node}, {group}, {index}, {next} and {previous}.",
    )
    appid: iec61850.Appid = Field(
        text("0x4000"),
        description="Application identifier, 0x4000 to 0x7FFF; hexadecimal digits or a number.",
    )
    destination: iec61850.Group = Field(
        "01-0C-CD-04-00-00", description="Group address, 01-0C-CD-04 and two bytes more."
    )
    rate: Frequency = Field(
        text("4000 /s"), description="Samples a second: 80 a cycle are 4000 /s at 50 Hz, 4800 /s at 60 Hz."
    )
    asdus: Positive = Field(1, le=255, description="Samples (ASDUs) in a frame.")
    signals: Positive | None = Field(
        None, description="So many numbers of FLOAT32 in a sample, in place of the eight values of 9-2LE."
    )
    frequency: Positive = Field(50, le=1000, description="Of the waves that the samples are of, in Hz.")
    smp_synch: int = Field(2, ge=0, le=254, description="0: not synchronised, 1: locally, 2: globally.")
    deadline: Duration | None = Field(None, description="Of each frame; missed is late or lost.")
    traffic_class: Name | None = Field(
        None, alias="class", description="What belongs together in tables, by default GROUP.SOFTWARE."
    )
    settle: Duration = Field(
        text("1 s"),
        description="It begins with the first full second that is so long after its connect time.",
    )


class SvOptions(Base):
    """A publisher, or who takes the streams of publishers."""

    publish: SvPublish | None = Field(None, description="The side that sends.")
    subscribe: Targets | None = Field(
        None, description="The side that receives: nodes or groups that publish, all their streams."
    )


class SampledValues(Base):
    """One side of sampled values."""

    sampled_values: SvOptions = Field(alias="sampled-values", description="The side.")


def sample_bytes(wanted: SvPublish) -> int:
    """Of one sample's data."""
    return PHSMEAS_BYTES if wanted.signals is None else FLOAT_BYTES * wanted.signals


def length_bytes(name: int, asdus: int, sample: int) -> int:
    """Of a frame above Ethernet, from bytes of its name and of a sample: 9-2LE's fields, tags and lengths."""
    tlv = iec61850.tlv_bytes
    asdu = tlv(name) + tlv(2) + tlv(4) + tlv(1) + tlv(sample)
    count = tlv(1 if asdus < 0x80 else 2)
    return iec61850.HEAD_BYTES + tlv(count + tlv(asdus * tlv(asdu)))


def _check(report: Checks, here: Here, model: SampledValues) -> None:
    options = model.sampled_values
    iec61850.check(report, here, options, RULES)
    if options.publish is not None:
        _check_stream(report, here, options.publish, (*here.path, RULES.kind, "publish"))


def _check_stream(report: Checks, here: Here, wanted: SvPublish, path: Path) -> None:
    if wanted.rate != int(wanted.rate) or not 1 <= wanted.rate <= MOST_SAMPLES:
        rule = f"smpCnt has 16 bits and counts whole samples of a second, 1 to {MOST_SAMPLES}"
        report.add((*path, "rate"), f"{wanted.rate:g} /s", rule, 'write for example "4000 /s"')
    elif wanted.rate % wanted.asdus:
        rule = f"samples of {wanted.rate:g} /s do not fill whole frames in a second"
        report.add((*path, "asdus"), wanted.asdus, rule, "write a divisor of the rate")
    if wanted.deadline == 0:
        report.add((*path, "deadline"), "0 s", "is no time at all", 'write for example "3 ms"')
    key = "asdus" if wanted.signals is None else "signals"
    length = length_bytes(len(wanted.sv_id), wanted.asdus, sample_bytes(wanted))
    iec61850.check_fits(
        report, here, wanted, length, (*path, key), "write less in a frame, or a larger `mtu`"
    )


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    heard = iec61850.receivers(scene, RULES.kind, all_of_it)
    for placed in all_of_it:
        wanted: SvPublish | None = placed.model.sampled_values.publish
        if wanted is None:
            streams = list(_streams(scene, placed))
            yield Planned(_software(scene, placed, {"publish": None, "subscribe": streams}))
            continue
        to = heard.get((placed.node, placed.name), ())
        card = iec61850.interface(scene, placed, wanted)
        name = iec61850.filled(scene, placed.node, wanted.sv_id)
        iec61850.check_mtu(card, placed.node, length_bytes(len(name), wanted.asdus, sample_bytes(wanted)))
        content = {
            "smp_synch": wanted.smp_synch,
            "dataset": "phsmeas" if wanted.signals is None else "float32",
            "signals": wanted.signals or 8,
            "frequency": wanted.frequency,
        }
        publish = {"interface": card.device, **_stream(scene, placed, wanted), **content}
        spec = {"publish": publish, "subscribe": []}
        receivers = {f"subscribers of {placed.endpoint}": to} if to else {}
        flow = _flow(scene, placed, wanted, tuple(Delivery(one, PROMISE) for one in receivers))
        yield Planned(_software(scene, placed, spec), (flow,), receivers)


def _software(scene: Scene, placed: Placed, spec: dict[str, Any]) -> Software:
    session = iec61850.session(scene, placed)
    return Software(
        placed.name, "server" if session.listens else "client", placed.kind, session=session, spec=spec
    )


def _stream(scene: Scene, placed: Placed, wanted: SvPublish) -> dict[str, Any]:
    """What both sides are told of it."""
    return {
        "to": iec61850.destination(wanted),
        "sv_id": iec61850.filled(scene, placed.node, wanted.sv_id),
        "conf_rev": wanted.conf_rev,
        "rate": int(wanted.rate),
        "asdus": wanted.asdus,
    }


def _streams(scene: Scene, placed: Placed) -> Iterator[dict[str, Any]]:
    """All that a subscriber takes; `flow` is a name until the flows have numbers."""
    for other in iec61850.publishers(scene, RULES.kind, placed.model.sampled_values.subscribe):
        wanted: SvPublish = other.model.sampled_values.publish
        flow = _flow(scene, other, wanted, ())
        card = iec61850.interface(scene, other, wanted)
        interface = iec61850.receiving(scene, placed.node, card, wanted)
        known = {"flow": flow.name, "start_ns": flow.start_ns, "interface": interface}
        yield {**_stream(scene, other, wanted), **known}


def _numbered(software: Software, ledger: Ledger) -> Software:
    streams = [{**stream, "flow": ledger.numbers[stream["flow"]]} for stream in software.spec["subscribe"]]
    return replace(software, spec={**software.spec, "subscribe": streams})


def _flow(scene: Scene, placed: Placed, wanted: SvPublish, deliveries: tuple[Delivery, ...]) -> Flow:
    """A frame is a message; raises SoftwareError where the load has no full second for it."""
    frames = RateStep.model_construct(since=Moment("ramp", 0), rate=wanted.rate / wanted.asdus)
    sending = Sending.model_construct(
        rate=[frames],
        rate_of="client",
        arrivals="together",
        burst=1,
        deadline=wanted.deadline,
        traffic_class=wanted.traffic_class,
        settle=wanted.settle,
    )
    payload = Payload("samples", wanted.asdus * sample_bytes(wanted))
    made = make_flow(scene, placed, sending, payload, pattern="stream", deliveries=deliveries)
    start_ns = -(-made.start_ns // SECOND_NS) * SECOND_NS
    if start_ns >= made.stop_ns:
        over = text_ns(made.stop_ns)
        rule = (
            f"{placed.name}: its samples begin with a full second, and the load ends {over} after the start"
        )
        raise SoftwareError(placed.node, rule, "lengthen the hold, or settle sooner")
    return replace(made, start_ns=start_ns)


def _words(software: Software, flows: Sequence[Flow]) -> str:
    if (stream := software.spec["publish"]) is None:
        return f"sampled values, takes {len(software.spec['subscribe'])} streams"
    return f"sampled values {stream['sv_id']}, {stream['rate']} /s, {stream['asdus']} in a frame"


def _costs(software: Software, flows: Sequence[Flow]) -> Costs:
    if (stream := software.spec["publish"]) is None:
        return Costs()
    around = iec61850.ETHERNET_BYTES + (iec61850.TAG_BYTES if stream["to"]["tag"] else 0)
    name, asdus = len(stream["sv_id"]), stream["asdus"]
    packets = [
        (expected_messages(flow), around + length_bytes(name, asdus, flow.payload.bytes // asdus))
        for flow in flows
    ]
    return Costs(one_copy=True, packets=tuple(packets))


KIND = Kind(
    name="sampled-values",
    key="sampled-values",
    model=SampledValues,
    what="sampled values",
    example="sampled-values: {publish: {sv_id: MU01}}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    numbered=_numbered,
    ramp=lambda model: None if model.sampled_values.publish is None else 1,
    titles={
        "SvOptions": "software.NAME.sampled-values: sampled values",
        "SvPublish": "sampled-values.publish",
    },
)
