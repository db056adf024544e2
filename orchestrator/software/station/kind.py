"""Defines the registry entry of stations: checks, descriptions for readers and costs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ...language.source import Path
from ..checking import Checks, Here, light
from ..gateway.file import Gateway
from ..kind import Costs, Kind
from .file import Station, StationOptions
from .planning import STATION, plan_stations

_MEMORY_BYTES = 3_000_000  # measured memory of the program
OUTSIDE = "whose links queue outside of it"


def _check(report: Checks, here: Here, model: Station) -> None:
    options, path = model.station, (*here.path, STATION)
    light(report, here, path, OUTSIDE)
    if options.receive is None and options.transmit is None:
        rule = "has no queues"
        report.add(path, None, rule, "write `receive: {rate: ...}`, `transmit: {rate: ...}` or both")
    for key, side in (("receive", options.receive), ("transmit", options.transmit)):
        if side is not None and not side.rate:
            report.add((*path, key, "rate"), "0 bit/s", "passes nothing", 'write for example "80 Mbit/s"')
    if options.receive is not None:
        _check_codes(report, (*path, "receive", "queues"), options.receive.queues)
    for node in here.nodes:
        _check_alone(report, node, options, path)


def _check_codes(report: Checks, path: Path, queues: Sequence[Sequence[int]]) -> None:
    seen: set[int] = set()
    for place, codes in enumerate(queues):
        if not codes:
            report.add((*path, place), None, "names no PCP", "name one, or leave the queue out")
        for code in codes:
            if code in seen:
                report.add((*path, place), code, "belongs to another queue, too", "name it in one queue")
            seen.add(code)


def _check_alone(report: Checks, node: str, options: StationOptions, path: Path) -> None:
    """Reports another program of the node that diverts frames of the same link."""
    programs = report.programs(node).values()
    stations = [one for one in programs if isinstance(one, Station) and one.station.link == options.link]
    if len(stations) > 1:
        rule = f"another station of {node} has this link, too"
        report.add((*path, "link"), options.link, rule, "write `receive` and `transmit` of both in one")
    for one in (one for one in programs if isinstance(one, Gateway)):
        if one.gateway.link == options.link and any(flow.overlay for flow in one.gateway.flows.values()):
            rule = f"a gateway's overlay of {node} diverts frames of this link, too"
            report.add((*path, "link"), options.link, rule, "leave one of the two out")


def _words(software: Software, _sent: Sequence[Flow]) -> str:
    sides = ", ".join(
        f"{side} {software.spec[side]}" for side in ("receive", "transmit") if software.spec[side]
    )
    return f"station at link {software.spec['link']}, {sides}"


def _costs(_software: Software, _sent: Sequence[Flow]) -> Costs:
    return Costs(_MEMORY_BYTES)


def _serves(model: Station) -> frozenset[int]:
    receive, transmit = model.station.receive, model.station.transmit
    codes = [code for queue in (receive.queues if receive is not None else ()) for code in queue]
    return frozenset([*codes, *(transmit.high if transmit is not None else ())])


KIND = Kind(
    name=STATION,
    key=STATION,
    model=Station,
    what="the queues of an end node's protocol stack",
    example="station: {link: lan, receive: {rate: 80 Mbit/s}}",
    check=_check,
    plan=plan_stations,
    words=_words,
    costs=_costs,
    serves=_serves,
    in_agent=False,
    endpoint=lambda _model: False,
    titles={
        "StationOptions": "software.NAME.station: queues of an end node's protocol stack",
        "StationReceive": "station's receive",
        "StationTransmit": "station's transmit",
    },
)
