"""Defines the keys of bulk transfers, and checks and plans them: greedy or paced TCP with a chosen congestion
control, or UDP at a rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Payload, Software

from ..language.scalars import Base, Duration, Name, Positive, Rate, Since, Size, text
from ..language.source import Path
from ..language.units import text_bps, text_bytes, text_ns
from . import peers
from .checking import Checks, Here
from .kind import (
    TCP_HEADERS_BYTES,
    TCP_SEGMENT_BYTES,
    UDP_BYTES,
    UDP_HEADERS_BYTES,
    Bind,
    Costs,
    Kind,
    Offered,
    Planned,
)
from .scene import LOAD_END, Placed, Scene

GUARANTEES = {
    "tcp": Guarantee("TCP bulk", "TCP bulk: counted in bytes, no message is judged"),
    "udp": Guarantee("UDP bulk", "UDP bulk: counted in bytes, no message is judged"),
}
# payload bytes of a datagram: at least the agent's header, at most what an IPv4 packet has room for
SMALLEST_BYTES, LARGEST_BYTES = 28, 65_507
MOST_STREAMS = 128
LEAST_WINDOW_NS = 1_000_000  # least interval: a round trip in a lab; a kernel's timers are not finer
MOST_WINDOWS = 100_000  # largest number of records of a transfer; they take 5 MB
_HEADER_BYTES = {"tcp": TCP_HEADERS_BYTES, "udp": UDP_HEADERS_BYTES}
_FASTEST_BPS = 10**9  # rate of a greedy transfer if no link on its path has a rate


class BulkOptions(peers.MarkedPeer):
    """A bulk transfer by the node's agent: cross traffic, like that of iperf3."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="Transport protocol.")
    congestion: str | None = Field(
        None,
        pattern=r"^[a-z][a-z0-9_-]{0,14}$",
        description="tcp: congestion control, by the kernel's name; by default the kernel's choice.",
    )
    streams: Positive = Field(1, le=MOST_STREAMS, description="Connections or sockets side by side.")
    rate: Rate | None = Field(
        None,
        description=(
            "Rate of the payload, all streams together; without it the transfer is greedy: as fast as TCP "
            "permits."
        ),
    )
    size: Size | None = Field(None, description=f"udp: payload of each datagram ({TCP_SEGMENT_BYTES} B).")
    start: Since = Field(text("hold"), description="A moment, or a duration from the start of the ramp.")
    duration: Duration | None = Field(
        None, alias="for", description="Duration; by default to the end of the hold."
    )
    volume: Size | None = Field(
        None, description="Volume after which the transfer ends, all streams together."
    )
    window: Duration | None = Field(
        None,
        description=(
            "tcp: how often the congestion window of each connection is recorded, from 1 ms; the report "
            "draws it. By default none is recorded."
        ),
    )
    traffic_class: Name | None = Field(
        None,
        alias="class",
        description="Traffic class: flows of one class are grouped in tables; by default GROUP.SOFTWARE.",
    )


class Bulk(Base):
    """The software key `bulk`: a receiver or a sender."""

    bulk: BulkOptions = Field(description="The side.")


_OF_THE_SENDER = tuple(BulkOptions.model_fields.keys() - peers.Peer.model_fields.keys())


def _check(report: Checks, here: Here, model: Bulk) -> None:
    wanted, path = model.bulk, (*here.path, KIND.name)
    peers.check_peer(report, here, wanted, KIND.name, ())
    if wanted.listen is not None:
        for name in sorted(wanted.model_fields_set & set(_OF_THE_SENDER)):
            key = BulkOptions.model_fields[name].alias or name
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    if wanted.protocol == "udp":
        _udp(report, wanted, path)
    elif wanted.size is not None:
        report.add((*path, "size"), None, "is of udp: tcp sends a stream of bytes", "leave it out")
    if wanted.rate == 0:
        report.add((*path, "rate"), None, "must be more than zero", "leave it out for a greedy transfer")
    if wanted.volume == 0:
        report.add((*path, "volume"), "0 B", "is nothing at all", 'write for example "10 MB"')
    _times(report, wanted, path)
    _window(report, wanted, path)
    if len(wanted.to or ()) > 1 or any(len(report.machines(path, name)) > 1 for name in wanted.to or ()):
        report.add((*path, "to"), None, "a transfer has one receiver", "write a `bulk` for each")


def _udp(report: Checks, wanted: BulkOptions, path: Path) -> None:
    if wanted.rate is None and wanted.to is not None:
        rule = "udp has no congestion control that would find a rate"
        report.add(path, None, rule, "write for example `rate: 10 Mbit/s`")
    if wanted.congestion is not None:
        report.add((*path, "congestion"), wanted.congestion, "udp has none", "leave it out")
    if not SMALLEST_BYTES <= (wanted.size or TCP_SEGMENT_BYTES) <= LARGEST_BYTES:
        rule = f"a datagram has from {SMALLEST_BYTES} to {LARGEST_BYTES} bytes"
        report.add((*path, "size"), f"{wanted.size} B", rule, f'write for example "{TCP_SEGMENT_BYTES} B"')


def _times(report: Checks, wanted: BulkOptions, path: Path) -> None:
    start = report.since_start_ns(wanted.start)
    over = report.since_start_ns(LOAD_END)
    if wanted.duration == 0:
        report.add((*path, "for"), "0 s", "is not above zero", 'write for example "10 s"')
    if start is None or over is None or wanted.to is None:
        return
    if start >= over:
        rule = f"is after the end of the load, which ends with the hold, {text_ns(over)} after the start"
        report.add((*path, "start"), f"{text_ns(start)} after the start", rule, "begin earlier")
    elif start + (wanted.duration or 0) > over:
        rule = (
            f"ends {text_ns(start + (wanted.duration or 0) - over)} after the load, which ends with the hold"
        )
        report.add((*path, "for"), None, rule, "shorten it, or lengthen the hold")


def _window(report: Checks, wanted: BulkOptions, path: Path) -> None:
    """Reports an interval between records of the congestion window that is of UDP, is below 1 ms, or makes
    more than MOST_WINDOWS records.
    """
    if wanted.window is None:
        return
    if wanted.protocol == "udp":
        report.add((*path, "window"), None, "is of tcp: udp has no congestion window", "leave it out")
    start, over = report.since_start_ns(wanted.start), report.since_start_ns(LOAD_END)
    if wanted.window < LEAST_WINDOW_NS:
        rule = f"is less than {text_ns(LEAST_WINDOW_NS)}"
        report.add((*path, "window"), text_ns(wanted.window), rule, 'write for example "100 ms"')
    elif start is not None and over is not None:
        length_ns = over - start if wanted.duration is None else wanted.duration
        count = length_ns // wanted.window * wanted.streams
        if count > MOST_WINDOWS:
            rule = f"would be recorded {count} times, and {MOST_WINDOWS} are allowed"
            report.add((*path, "window"), text_ns(wanted.window), rule, "write a longer time")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        to = peers.targets(scene, placed)
        software = Software(
            placed.name,
            peers.role(placed),
            placed.kind,
            session=peers.session(scene, placed),
            spec={**peers.spec(scene, placed, to), **_spec(scene, placed)},
        )
        if not to:
            yield Planned(software)
            continue
        name = peers.set_name(placed)
        yield Planned(software, (_flow(scene, placed, name),), {name: tuple(one.endpoint for one in to)})


def _spec(scene: Scene, placed: Placed) -> dict[str, object]:
    wanted: BulkOptions = placed.model.bulk
    start_ns, stop_ns = _between(scene, wanted)
    receivers = [node for name in wanted.to or () for node in scene.machines(name)]
    return {
        "protocol": wanted.protocol,
        "congestion": wanted.congestion,
        "streams": wanted.streams,
        "rate_bps": wanted.rate,
        "size": (wanted.size or TCP_SEGMENT_BYTES) if wanted.protocol == "udp" else None,
        "volume_bytes": wanted.volume,
        "start_ns": start_ns,
        "stop_ns": stop_ns,
        **({} if wanted.window is None else {"window_ns": wanted.window}),
        "path_rate_bps": min((scene.bottleneck_bps(placed.node, to) for to in receivers), default=0),
    }


def _between(scene: Scene, wanted: BulkOptions) -> tuple[int, int]:
    start_ns = scene.at_ns(wanted.start)
    return start_ns, scene.stop_ns if wanted.duration is None else start_ns + wanted.duration


def _flow(scene: Scene, placed: Placed, receivers: str) -> Flow:
    """Returns the flow of a transfer; it has no schedule, because a transfer has no single messages."""
    wanted: BulkOptions = placed.model.bulk
    start_ns, stop_ns = _between(scene, wanted)
    return Flow(
        name=f"{placed.node}.{placed.name}",
        traffic_class=wanted.traffic_class or f"{scene.group_of[placed.node]}.{placed.name}",
        pattern="stream",
        sender=placed.endpoint,
        deliveries=(Delivery(receivers, GUARANTEES[wanted.protocol]),),
        payload=Payload("bytes", wanted.size or TCP_SEGMENT_BYTES),
        schedule=None,
        start_ns=start_ns,
        stop_ns=stop_ns,
    )


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    if spec["listen"] is not None:
        return f"bulk, listens on port {spec['listen']}"
    said = [f"bulk {spec['protocol'].upper()}"]
    said += [spec["congestion"]] if spec["congestion"] else []
    said += [f"{spec['streams']} streams"] if spec["streams"] > 1 else []
    said += [text_bps(spec["rate_bps"]) if spec["rate_bps"] else "greedy"]
    said += [text_bytes(spec["volume_bytes"])] if spec["volume_bytes"] else []
    said += [f"from {text_ns(flow.start_ns)} to {text_ns(flow.stop_ns)}" for flow in sent]
    return ", ".join(said)


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the costs of a transfer at worst: each TCP segment is acknowledged alone, and a greedy transfer
    fills the whole path until its end or volume.
    """
    spec, packets = software.spec, list[tuple[float, int]]()
    for flow in sent:
        most = (
            (spec["rate_bps"] or spec["path_rate_bps"] or _FASTEST_BPS)
            / 8
            * (flow.stop_ns - flow.start_ns)
            / 1e9
        )
        count = min(most, spec["volume_bytes"] or most) / flow.payload.bytes
        header = _HEADER_BYTES[spec["protocol"]]
        packets.append((count, header + flow.payload.bytes))
        packets += [(count, header)] if spec["protocol"] == "tcp" else []
    files = {"server": spec["streams"]} if sent else {}
    return Costs(files_at=files, peers=len(spec["to"]), packets=tuple(packets))


def _offers(software: Software, flow: Flow) -> Offered | str:
    """Returns the offered load of all UDP streams together, one datagram at a time; for TCP the reason why
    there is none.
    """
    spec = software.spec
    if spec["protocol"] != "udp":
        return "TCP decides when its packets leave"
    return Offered(UDP_BYTES + flow.payload.bytes, per_s=spec["rate_bps"] / 8 / flow.payload.bytes)


KIND = Kind(
    name="bulk",
    key="bulk",
    model=Bulk,
    what="a bulk transfer",
    example="bulk: {listen: 5201}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    offers=_offers,
    ramp=lambda model: None if model.bulk.listen is not None else 1,
    binds=lambda model: [
        Bind(transport, model.bulk.listen, ("bulk", "listen"))
        for transport in ("tcp", "udp")
        if model.bulk.listen is not None
    ],
    titles={"BulkOptions": "software.NAME.bulk: a bulk transfer"},
)
