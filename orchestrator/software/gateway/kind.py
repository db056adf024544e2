"""Defines the registry entries of gateways and of their broker: checks, descriptions for readers, costs and
ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from contract.plan import Flow, Software

from ...language.source import Path
from ...language.units import text_ns
from ..checking import Checks, Here, joined, light
from ..kind import Bind, Costs, Kind, Shares
from .file import Gateway, GatewayOptions, Governed, Reservations
from .planning import GATEWAY, RESERVATIONS, plan_gateways, plan_reservations

_MEMORY_BYTES = 3_000_000  # measured memory of the program
OUTSIDE = "whose links queue outside of it"


def _check_gateway(report: Checks, here: Here, model: Gateway) -> None:
    options, path = model.gateway, (*here.path, GATEWAY)
    light(report, here, path, OUTSIDE)
    for node in here.nodes:
        if not report.forwards(node):
            report.add(path, None, f"node {node} does not forward", "write `forward: true` at the node")
        if sum(one.link == options.link for one in _gateways(report.programs(node))) > 1:
            rule = f"another gateway of {node} governs this link, too"
            report.add((*path, "link"), options.link, rule, "write the flows of both in one")
    if options.period < 10**7:
        report.add((*path, "period"), None, "is at least 10 ms", 'write for example "1 s"')
    if not options.weight:
        report.add((*path, "weight"), None, "leaves the first estimate as it is", 'write for example "75 %"')
    if options.broker is not None and report.node((*path, "broker"), options.broker):
        joined(report, here, (*path, "broker"), options.broker, options.broker)
    for name, flow in options.flows.items():
        _check_flow(report, (*path, "flows", name), flow)
        at = (*path, "flows", name, "upstream")
        if flow.upstream is None or not report.node(at, flow.upstream):
            continue
        joined(report, here, at, flow.upstream, flow.upstream)
        for node in here.nodes:
            if node in _told(report, name, flow.upstream):
                rule = f"{flow.upstream} is upstream of {node}, and {node} of {flow.upstream}"
                report.add(at, flow.upstream, rule, "name the node that the flow comes from")


def _check_flow(report: Checks, path: Path, flow: Governed) -> None:
    if flow.maximum is not None and flow.maximum < flow.minimum:
        report.add((*path, "maximum"), None, "is below `minimum`", "raise it, or lower `minimum`")
    red = flow.overlay.red if flow.overlay is not None else None
    if red is None:
        return
    at = (*path, "overlay", "red")
    if not 0 < red.min < red.max:
        report.add(
            (*at, "min"), red.min, f"is not above 0 and below max, {red.max}", "a third of max is usual"
        )
    for key in ("probability", "weight"):
        if not 0 < getattr(red, key) <= 1:
            report.add((*at, key), None, "is not above 0", 'write for example "2 %"')


def _told(report: Checks, flow: str, first: str) -> set[str]:
    """Returns the nodes upstream of node `first` for a flow, found from gateway to gateway; they receive the
    flow's share one after another.
    """
    found, last = set[str](), [first]
    while last:
        options = _gateway_of(report.programs(last.pop()), flow)
        upstream = options.flows[flow].upstream if options is not None else None
        if upstream is not None and upstream not in found and upstream in set(report.everyone):
            found.add(upstream)
            last.append(upstream)
    return found


def _gateway_of(software: Mapping[str, object], flow: str) -> GatewayOptions | None:
    return next((one for one in _gateways(software) if flow in one.flows), None)


def _gateways(software: Mapping[str, object]) -> Iterator[GatewayOptions]:
    return (one.gateway for one in software.values() if isinstance(one, Gateway))


def _check_reservations(report: Checks, here: Here, model: Reservations) -> None:
    light(report, here, (*here.path, RESERVATIONS), OUTSIDE)


def _words_of_gateway(software: Software, _sent: Sequence[Flow]) -> str:
    flows, helped = len(software.spec["flows"]), "" if software.spec["cooperate"] else ", by its broker alone"
    return f"gateway of link {software.spec['link']}, {flows} flows{helped}"


def _words_of_broker(software: Software, _sent: Sequence[Flow]) -> str:
    gateways = ", ".join(software.spec["gateways"]) or "none"
    return f"broker of gateways ({gateways}), answers after {text_ns(software.spec['response_ns'])}"


def _costs(software: Software, _sent: Sequence[Flow]) -> Costs:
    return Costs(_MEMORY_BYTES, peers=len(software.spec.get("flows", software.spec.get("gateways", ()))))


def _shares(software: Software) -> Shares:
    """Returns the classes whose rates the gateway changes, with their least rates; plans of earlier
    versions have no least rates.
    """
    spec = software.spec
    return Shares(spec["link"], spec.get("least_bps", {}), frozenset(spec.get("overlay", ())))


KIND = Kind(
    name=GATEWAY,
    key=GATEWAY,
    model=Gateway,
    what="a gateway of cooperative congestion control",
    example="gateway: {link: wan, flows: {pmu: {service: high-real-time, group: a, minimum: 48 kbit/s}}}",
    check=_check_gateway,
    plan=plan_gateways,
    words=_words_of_gateway,
    costs=_costs,
    shares=_shares,
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda model: (Bind("tcp", model.gateway.listen, (GATEWAY, "listen")),),
    titles={
        "GatewayOptions": "software.NAME.gateway: cooperative congestion control",
        "Governed": "gateway's flows",
        "Overlay": "gateway's overlay",
        "EarlyDetection": "gateway's overlay's red",
        "Deadline": "gateway's overlay's flows",
    },
)
BROKER = Kind(
    name=RESERVATIONS,
    key=RESERVATIONS,
    model=Reservations,
    what="the broker of gateways",
    example="reservations: {response: 60 s}",
    check=_check_reservations,
    plan=plan_reservations,
    words=_words_of_broker,
    costs=_costs,
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda model: (Bind("tcp", model.reservations.listen, (RESERVATIONS, "listen")),),
    titles={"ReservationsOptions": "software.NAME.reservations: the broker of gateways"},
)
