"""Defines the keys of synchrophasors (IEEE C37.118.2), and checks and plans them: measuring stations, and
concentrators that request their data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Payload, Session, Software
from contract.plan.family import has_ipv6

from ..language.dscp import marks
from ..language.scalars import Base, Port, Positive, Targets
from ..language.source import Path
from . import peers
from .checking import Checks, Here
from .kind import (
    TCP_HEADERS_BYTES,
    UDP_BYTES,
    UDP_HEADERS_BYTES,
    Bind,
    Costs,
    Kind,
    Ledger,
    Offered,
    Planned,
)
from .peers import MarkedPeer
from .scene import Placed, Scene
from .sending import Sending, check_sending, expected_messages, make_flow, rate_words
from .tcp import PATIENCE_NS

LARGEST_IDCODE = 65_534
FASTEST_PER_S = 32_767  # the largest DATA_RATE
MOST_CHANNELS = 500  # most channels of each sort, since a frame's size has 16 bits
TCP = Guarantee(
    "C37.118 over TCP",
    "C37.118 over TCP: while the connection lasts, no frame is delivered twice or overtaken",
    single=True,
    ordered=True,
    while_session=True,
)
UDP = Guarantee("C37.118 over UDP", "C37.118 over UDP: nothing is guaranteed")
STATION = ("transport", "idcode", "phasors", "analogs", "nominal", "data")


class SynchrophasorOptions(MarkedPeer):
    """A station (PMU), with `listen` and `data`, or a client of stations (PDC), with `to`."""

    listen: Port | None = Field(None, description="A station: port for requests; usually 4712.")
    to: Targets | None = Field(
        None, description="A client: nodes or groups with a station; it requests the data of all of them."
    )
    transport: Literal["tcp", "udp"] = Field("tcp", description="A station: transport of commands and data.")
    idcode: Positive | None = Field(
        None,
        le=LARGEST_IDCODE,
        description="A station: number of the station; by default its place among all, from 1.",
    )
    phasors: Positive = Field(6, le=MOST_CHANNELS, description="A station: phasors in a data frame.")
    analogs: int = Field(0, ge=0, le=MOST_CHANNELS, description="A station: analog values in a data frame.")
    nominal: Literal[50, 60] = Field(50, description="A station: the line's nominal frequency, Hz.")
    data: Sending | None = Field(None, description="A station: data frames, sent to the clients.")


class Synchrophasor(Base):
    """The software key `synchrophasor`: a station or a client of stations."""

    synchrophasor: SynchrophasorOptions = Field(description="The side.")


def data_bytes(phasors: int, analogs: int) -> int:
    """Returns the length of a data frame with floating-point values: common fields, status, phasors,
    frequency and its rate of change, analogs, digital words, checksum.
    """
    return 14 + 2 + 8 * phasors + 8 + 4 * analogs + 4 + 2


def _check(report: Checks, here: Here, model: Synchrophasor) -> None:
    options, path = model.synchrophasor, (*here.path, "synchrophasor")
    peers.check_peer(report, here, options, "synchrophasor", ())
    if options.listen is None:
        for key in sorted(options.model_fields_set & set(STATION)):
            rule = "belongs to a station"
            report.add((*path, key), None, rule, "write it where `listen` is")
        _check_stations(report, options, path)
    elif options.data is None:
        report.add(path, None, "measures, but does not say how often", "write `data: {rate: 50 /s}`")
    else:
        _check_data(report, here, options.data, (*path, "data"))


def _check_data(report: Checks, here: Here, data: Sending, path: Path) -> None:
    check_sending(report, here, data, path, "leave out the software where nothing is measured")
    for index, step in enumerate(data.rate):
        if step.rate > FASTEST_PER_S:
            rule = f"is more than a configuration frame can state, {FASTEST_PER_S} /s"
            report.add((*path, "rate", index, "rate"), f"{step.rate:g} /s", rule, 'write for example "50 /s"')


def _check_stations(report: Checks, options: SynchrophasorOptions, path: Path) -> None:
    found = [
        (node, one)
        for name in options.to or ()
        for node in report.machines((*path, "to"), name)
        for model in report.programs(node).values()
        if (one := peers.options_of(model, "synchrophasor")) and one.listen is not None
    ]
    if len({one.transport for _, one in found}) > 1:
        rule = "some of these stations speak by TCP and some by UDP"
        report.add((*path, "to"), None, rule, "write a `synchrophasor` for each transport")
    seen: dict[int, str] = {}
    for node, one in found:
        if one.idcode is not None and seen.setdefault(one.idcode, node) != node:
            rule = f"{seen[one.idcode]} and {node} have the IDCODE {one.idcode} both"
            report.add((*path, "to"), None, rule, "give each station one of its own, or none")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    stations = [one for one in all_of_it if one.model.synchrophasor.listen is not None]
    asked = {one.endpoint: peers.targets(scene, one) for one in all_of_it if one not in stations}
    for placed in all_of_it:
        if placed in stations:
            heard = [
                one
                for one in all_of_it
                if any(target.endpoint == placed.endpoint for target in asked.get(one.endpoint, ()))
            ]
            yield _station(scene, placed, 1 + stations.index(placed), heard)
        else:
            yield _concentrator(scene, placed, stations)


def _station(scene: Scene, placed: Placed, place: int, heard: Sequence[Placed]) -> Planned:
    options: SynchrophasorOptions = placed.model.synchrophasor
    assert options.data is not None, "the check has seen it"
    spec = {
        "transport": options.transport,
        "listen": options.listen,
        "station": {
            "name": placed.node,
            "idcode": options.idcode or place,
            "phasors": options.phasors,
            "analogs": options.analogs,
            "nominal_hz": options.nominal,
        },
        **_common(scene, placed),
    }
    name = f"who asks {placed.endpoint}"
    payload = Payload("own", data_bytes(options.phasors, options.analogs))
    flow = make_flow(
        scene,
        placed,
        options.data,
        payload,
        pattern="stream",
        deliveries=(Delivery(name, TCP if options.transport == "tcp" else UDP),) if heard else (),
        heard_ns=max((one.connect_ns for one in heard), default=0),
    )
    session = Session(placed.endpoint, 0, scene.end_ns, listens=True)
    ports: dict[str, tuple[int, ...]] = {"synphasor": (options.listen,)} if options.listen else {}
    software = Software(placed.name, "server", placed.kind, session=session, spec=spec, ports=ports)
    return Planned(software, (flow,), {name: tuple(one.endpoint for one in heard)} if heard else {})


def _concentrator(scene: Scene, placed: Placed, stations: Sequence[Placed]) -> Planned:
    """Plans a concentrator; `flow` in its settings holds a flow's name until flows have numbers."""
    to: list[dict[str, Any]] = []
    for target in peers.targets(scene, placed):
        place = next(n for n, one in enumerate(stations) if one.endpoint == target.endpoint)
        other = stations[place]
        options: SynchrophasorOptions = other.model.synchrophasor
        to.append(
            {
                "endpoint": target.endpoint,
                "address": target.address,
                "port": target.port,
                "idcode": options.idcode or 1 + place,
                "flow": f"{other.node}.{other.name}",
            }
        )
        transport = options.transport
    spec = {"transport": transport, "to": to, **_common(scene, placed)}
    patience_ns = PATIENCE_NS if transport == "tcp" else None
    session = Session(placed.endpoint, placed.connect_ns, scene.end_ns, patience_ns=patience_ns)
    ports = {"synphasor": tuple(sorted({one["port"] for one in to}))}
    return Planned(Software(placed.name, "client", placed.kind, session=session, spec=spec, ports=ports))


def _common(scene: Scene, placed: Placed) -> dict[str, Any]:
    found: dict[str, Any] = dict(marks(placed.model.synchrophasor))
    return found | ({"ipv6": True} if has_ipv6(scene.interfaces[placed.node]) else {})


def _numbered(software: Software, ledger: Ledger) -> Software:
    to = [{**one, "flow": ledger.numbers[one["flow"]]} for one in software.spec.get("to", ())]
    return replace(software, spec={**software.spec, "to": to}) if to else software


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    over = spec["transport"].upper()
    if "station" not in spec:
        return f"PDC over {over}, asks {len(spec['to'])}"
    station = spec["station"]
    rates = ", ".join(rate_words(flow) for flow in sent)
    return (
        f"PMU {station['idcode']} over {over}, port {spec['listen']}: {station['phasors']} phasors, {rates}"
    )


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    over_tcp = software.spec["transport"] == "tcp"
    headers = TCP_HEADERS_BYTES if over_tcp else UDP_HEADERS_BYTES
    packets = [(expected_messages(flow), headers + flow.payload.bytes) for flow in sent]
    acknowledged = [(count, headers) for count, _ in packets] if over_tcp else []
    return Costs(packets=tuple(packets + acknowledged), peers=len(software.spec.get("to", ())))


def _offers(software: Software, flow: Flow) -> Offered | str:
    """Returns the offered load of data frames over UDP; for TCP the reason why there is none."""
    if software.spec["transport"] == "tcp":
        return "TCP decides when its packets leave"
    return Offered(UDP_BYTES + flow.payload.bytes)


def _binds(model: Synchrophasor) -> Sequence[Bind]:
    options = model.synchrophasor
    if options.listen is None:
        return ()
    return (Bind(options.transport, options.listen, ("synchrophasor", "listen")),)


KIND = Kind(
    name="synchrophasor",
    key="synchrophasor",
    model=Synchrophasor,
    what="a side of C37.118",
    example="synchrophasor: {listen: 4712, data: {rate: 50 /s}}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    offers=_offers,
    ramp=lambda model: None if model.synchrophasor.listen is not None else 0,
    binds=_binds,
    numbered=_numbered,
    titles={"SynchrophasorOptions": "software.NAME.synchrophasor: a station or its client (C37.118)"},
)
