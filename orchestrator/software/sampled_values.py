"""Defines the keys of sampled values (IEC 61850-9-2), and checks and plans them: streams of samples directly
above Ethernet, and their subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Interface, Payload

from ..language.scalars import Base, Duration, Frequency, Moment, Name, Positive, Targets, text
from ..language.source import Path
from ..language.units import text_ns
from .checking import Checks, Here
from .iec61850.checks import check_fits
from .iec61850.file import Appid, Group, Published, Rules
from .iec61850.frames import HEAD_BYTES, tlv_bytes
from .iec61850.kind import make_kind
from .iec61850.planning import Form, check_mtu, destination
from .kind import Offered, SoftwareError
from .placeholders import fill_for
from .scene import Placed, Scene
from .sending import RateStep, Sending, expected_messages, make_flow

RULES = Rules("sampled-values", (0x4000, 0x7FFF), "01-0C-CD-04", "sv_id", "IEC 61850-9-2")
GUARANTEE = Guarantee("SV", "SV: nothing is guaranteed")
SECOND_NS = 10**9
MOST_SAMPLES = 1 << 16  # samples/s, because smpCnt has 16 bits
PHSMEAS_BYTES = 64  # bytes of eight values of four bytes, each with a quality of four (9-2LE, section 7.1.4)
FLOAT_BYTES = 4


class SvPublish(Published):
    """One stream of samples at even times; in each second, the first sample has smpCnt 0."""

    sv_id: str = Field(
        min_length=1,
        description="Name of the stream; may hold {node}, {group}, {index}, {next} and {previous}.",
    )
    appid: Appid = Field(
        text("0x4000"),
        description="Application identifier, 0x4000 to 0x7FFF; hexadecimal digits or a number.",
    )
    destination: Group = Field(
        "01-0C-CD-04-00-00", description="Group address, 01-0C-CD-04 and two bytes more."
    )
    rate: Frequency = Field(
        text("4000 /s"), description="Samples a second: 80 a cycle are 4000 /s at 50 Hz, 4800 /s at 60 Hz."
    )
    asdus: Positive = Field(1, le=255, description="Samples (ASDUs) in a frame.")
    signals: Positive | None = Field(
        None, description="Number of FLOAT32 values in a sample, in place of the eight values of 9-2LE."
    )
    frequency: Positive = Field(50, le=1000, description="Frequency of the sampled waves, in Hz.")
    smp_synch: int = Field(2, ge=0, le=254, description="0: not synchronised, 1: locally, 2: globally.")
    deadline: Duration | None = Field(
        None, description="Deadline of each frame; late and lost frames miss it."
    )
    traffic_class: Name | None = Field(
        None,
        alias="class",
        description="Traffic class: flows of one class are grouped in tables; by default GROUP.SOFTWARE.",
    )
    settle: Duration = Field(
        text("1 s"),
        description="Least time from the connect time to the full second in which the stream begins.",
    )


class SvOptions(Base):
    """A publisher, or a subscriber to the streams of publishers."""

    publish: SvPublish | None = Field(None, description="The side that sends.")
    subscribe: Targets | None = Field(
        None, description="The side that receives: nodes or groups that publish, all their streams."
    )


class SampledValues(Base):
    """The software key `sampled-values`: a publisher or a subscriber."""

    sampled_values: SvOptions = Field(alias="sampled-values", description="The side.")


def sample_bytes(wanted: SvPublish) -> int:
    """Returns the length in bytes of one sample's data."""
    return PHSMEAS_BYTES if wanted.signals is None else FLOAT_BYTES * wanted.signals


def length_bytes(name: int, asdus: int, sample: int) -> int:
    """Returns the length of a frame above Ethernet with 9-2LE's fields, from the lengths of its name and
    sample.
    """
    asdu = tlv_bytes(name) + tlv_bytes(2) + tlv_bytes(4) + tlv_bytes(1) + tlv_bytes(sample)
    count = tlv_bytes(1 if asdus < 0x80 else 2)
    return HEAD_BYTES + tlv_bytes(count + tlv_bytes(asdus * tlv_bytes(asdu)))


def _check(report: Checks, here: Here, wanted: SvPublish, path: Path) -> None:
    if wanted.rate != int(wanted.rate) or not 1 <= wanted.rate <= MOST_SAMPLES:
        rule = f"smpCnt has 16 bits and counts whole samples of a second, 1 to {MOST_SAMPLES}"
        report.add((*path, "rate"), f"{wanted.rate:g} /s", rule, 'write for example "4000 /s"')
    elif wanted.rate % wanted.asdus:
        rule = f"samples of {wanted.rate:g} /s do not fill whole frames in a second"
        report.add((*path, "asdus"), wanted.asdus, rule, "write a divisor of the rate")
    if wanted.deadline == 0:
        report.add((*path, "deadline"), "0 s", "is not above zero", 'write for example "3 ms"')
    key = "asdus" if wanted.signals is None else "signals"
    length = length_bytes(len(wanted.sv_id), wanted.asdus, sample_bytes(wanted))
    check_fits(report, here, wanted, length, (*path, key), "write less in a frame, or a larger `mtu`")


def _stream(scene: Scene, placed: Placed, wanted: SvPublish) -> dict[str, Any]:
    return {
        "to": destination(wanted),
        "sv_id": fill_for(scene, placed, wanted.sv_id),
        "conf_rev": wanted.conf_rev,
        "rate": int(wanted.rate),
        "asdus": wanted.asdus,
    }


def _publish(scene: Scene, placed: Placed, wanted: SvPublish, card: Interface) -> dict[str, Any]:
    stream = _stream(scene, placed, wanted)
    check_mtu(card, placed.node, length_bytes(len(stream["sv_id"]), wanted.asdus, sample_bytes(wanted)))
    return {
        "interface": card.device,
        **stream,
        "smp_synch": wanted.smp_synch,
        "dataset": "phsmeas" if wanted.signals is None else "float32",
        "signals": wanted.signals or 8,
        "frequency": wanted.frequency,
    }


def _heard(_other: Placed, flow: Flow) -> dict[str, Any]:
    return {"start_ns": flow.start_ns}


def _flow(scene: Scene, placed: Placed, wanted: SvPublish, deliveries: tuple[Delivery, ...]) -> Flow:
    """Returns the flow of a stream, in which each frame is one message; raises SoftwareError if the load
    has no full second for it.
    """
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


def _words(stream: Mapping[str, Any], _flows: Sequence[Flow]) -> str:
    return f"sampled values {stream['sv_id']}, {stream['rate']} /s, {stream['asdus']} in a frame"


def _packets(stream: Mapping[str, Any], flow: Flow) -> Iterator[tuple[float, int]]:
    name, asdus = len(stream["sv_id"]), stream["asdus"]
    yield expected_messages(flow), length_bytes(name, asdus, flow.payload.bytes // asdus)


def _offers(stream: Mapping[str, Any], flow: Flow) -> Offered:
    asdus = stream["asdus"]
    length = length_bytes(len(stream["sv_id"]), asdus, flow.payload.bytes // asdus)
    return Offered(length, over_ip=False, pcp=(stream["to"]["tag"] or (0, None))[1])


KIND = make_kind(
    RULES,
    Form(GUARANTEE, _stream, _publish, _heard, _flow),
    model=SampledValues,
    what="sampled values",
    example="sampled-values: {publish: {sv_id: MU01}}",
    titles={
        "SvOptions": "software.NAME.sampled-values: sampled values",
        "SvPublish": "sampled-values.publish",
    },
    check=_check,
    words=_words,
    packets=_packets,
    offers=_offers,
)
