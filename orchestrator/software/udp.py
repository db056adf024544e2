"""Defines the keys of the agent's UDP messages, and checks and plans them: requests and answers, messages
without an answer, and streams. Delivery is not guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from contract.plan import Flow, Guarantee, Software

from ..language.scalars import Base, Name, Port
from . import peers, rates_wanted
from .checking import Checks, Here
from .kind import UDP_BYTES, UDP_HEADERS_BYTES, Bind, Costs, Kind, Offered, Planned
from .messages import PATTERNS, Push, Request, Stream, check_messages, flow_words, flows, timeout_ns
from .scene import Placed, Scene
from .sending import expected_messages, rate_words, receivers_of_each

LARGEST_BYTES = 65_507  # 65,535 of an IPv4 packet, less the headers of IP (20) and UDP (8): RFC 768, RFC 791
GUARANTEE = Guarantee("UDP", "UDP: nothing is guaranteed")


class RateLimitsFrom(Base):
    """The port at which programs on the path set a flow's rate limit; the sender leaves out messages above
    the limit.
    """

    listen: Port = Field(description="TCP port of the sender.")
    flow: Name = Field(description="The flow's name in their `flows`.")


class UdpOptions(peers.MarkedPeer):
    """Messages over UDP; the node's agent implements the protocol and accounts for every message."""

    request: Request | None = Field(None, description="Messages that each receiver answers.")
    push: Push | None = Field(None, description="Messages without an answer.")
    stream: Stream | None = Field(None, description="A continuous feed.")
    rate_limits_from: RateLimitsFrom | None = Field(None, description="to: programs that may limit its rate.")
    wants: rates_wanted.Wants | None = Field(
        None, description="listen: the rate at which it wants a flow, of which it tells a gateway."
    )


class Udp(Base):
    """The software key `udp`: a receiver or a sender."""

    udp: UdpOptions = Field(description="The side.")


def _check(report: Checks, here: Here, model: Udp) -> None:
    peers.check_peer(report, here, model.udp, KIND.name, PATTERNS)
    if model.udp.rate_limits_from is not None and model.udp.to is None:
        rule = "does not belong to the side that listens"
        report.add((*here.path, KIND.name, "rate_limits_from"), None, rule, "write it where `to` is")
    if (wants := model.udp.wants) is not None:
        at = (*here.path, KIND.name, "wants")
        if model.udp.listen is None:
            report.add(at, None, "does not belong to the side that sends", "write it where `listen` is")
        rates_wanted.check(report, here, at, wants)
    for key in PATTERNS:
        if (wanted := getattr(model.udp, key)) is not None:
            check_messages(report, here, wanted, (*here.path, KIND.name, key), LARGEST_BYTES)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        to = peers.targets(scene, placed)
        software = Software(
            placed.name,
            peers.role(placed),
            placed.kind,
            session=peers.session(scene, placed),
            spec=_spec(scene, placed, to),
            ports=peers.ports(placed, to),
        )
        receivers = {peers.set_name(placed): tuple(one.endpoint for one in to)} if to else {}
        yield Planned(
            software, tuple(flows(scene, placed, peers.deliveries(placed, to, GUARANTEE))), receivers
        )


def _spec(scene: Scene, placed: Placed, to: Sequence[peers.Target]) -> dict[str, Any]:
    spec = {**peers.spec(scene, placed, to), "timeout_ns": timeout_ns(placed)}
    limits: RateLimitsFrom | None = placed.model.udp.rate_limits_from
    if limits is not None:
        spec["rate_limits_from"] = {"port": limits.listen, "name": limits.flow}
    if placed.model.udp.wants is not None:
        spec["wants"] = rates_wanted.spec(scene, placed, placed.model.udp.wants)
    return spec


def _binds(model: Udp) -> tuple[Bind, ...]:
    udp = model.udp
    listens = (Bind("udp", udp.listen, ("udp", "listen")),) if udp.listen else ()
    if (limits := udp.rate_limits_from) is None:
        return listens
    return (Bind("tcp", limits.listen, ("udp", "rate_limits_from", "listen")),)


def _words(software: Software, sent: Sequence[Flow]) -> str:
    if software.spec["listen"] is not None:
        wants = software.spec.get("wants")
        of = f", wants rates of {wants['name']}" if wants else ""
        return f"UDP, listens on port {software.spec['listen']}{of}"
    return "; ".join(["UDP", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    to = len(software.spec["to"])
    packets = [
        (receivers_of_each(flow, to) * expected_messages(flow), UDP_HEADERS_BYTES + payload.bytes)
        for flow in sent
        for payload in (flow.payload, flow.reply)
        if payload is not None
    ]
    return Costs(peers=to, packets=tuple(packets))


def _offers(_software: Software, flow: Flow) -> Offered:
    reply = UDP_BYTES + flow.reply.bytes if flow.reply is not None else 0
    return Offered(UDP_BYTES + flow.payload.bytes, reply)


KIND = Kind(
    name="udp",
    key="udp",
    model=Udp,
    what="messages over UDP",
    example="udp: {listen: 9000}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    offers=_offers,
    ramp=lambda model: None if model.udp.listen is not None else 1,
    binds=_binds,
    titles={
        "UdpOptions": "software.NAME.udp: messages over UDP",
        "RateLimitsFrom": "udp's rate_limits_from",
        "Wants": "udp's wants",
        "RateWanted": "udp's wanted rates",
    },
)
