"""Defines the keys of the agent's TCP messages, and checks and plans them: requests, answers, and messages
without an answer, over connections that reconnect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from contract.plan import Flow, Guarantee, Software

from ..language.scalars import Base, Duration, Positive, text
from . import peers
from .checking import Checks, Here
from .kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES, Bind, Costs, Kind, Planned
from .messages import Push, Request, check_messages, flow_words, flows, timeout_ns
from .scene import Placed, Scene
from .sending import expected_messages, rate_words, receivers_of_each

PATTERNS = ("request", "push")
LARGEST_BYTES = 1 << 20
GUARANTEE = Guarantee(
    "TCP",
    "TCP: while the connection lasts, no message is lost, delivered twice or overtaken",
    lossless=True,
    single=True,
    ordered=True,
    while_session=True,
)
# Time after which data has arrived or its connection has ended: the kernel's 15 retransmissions take 924.6 s
# (tcp_retries2, Documentation/networking/ip-sysctl.rst).
PATIENCE_NS = 924_600_000_000
_LENGTH_BYTES = 4  # bytes of the length before each message
_CONNECTION_PACKETS = 8  # packets of handshake and end, with their acknowledgements


class TcpOptions(peers.MarkedPeer):
    """Messages over TCP; the node's agent implements the protocol and accounts for every message."""

    nodelay: bool = Field(False, description="Switch off Nagle's algorithm on this side's sockets.")
    reconnect: Duration = Field(
        text("1 s"), description="Wait before a new attempt to connect; 0 s: never reconnect."
    )
    queue: Positive = Field(
        1000, le=2**31 - 1, description="Messages that may wait for each receiver's connection."
    )
    request: Request | None = Field(None, description="Messages that each receiver answers.")
    push: Push | None = Field(None, description="Messages without an answer.")


class Tcp(Base):
    """The software key `tcp`: a receiver or a sender."""

    tcp: TcpOptions = Field(description="The side.")


def _check(report: Checks, here: Here, model: Tcp) -> None:
    path = (*here.path, KIND.name)
    peers.check_peer(report, here, model.tcp, KIND.name, PATTERNS)
    for key in ("reconnect", "queue"):
        if model.tcp.listen is not None and key in model.tcp.model_fields_set:
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    for key in PATTERNS:
        if (wanted := getattr(model.tcp, key)) is not None:
            check_messages(report, here, wanted, (*path, key), LARGEST_BYTES)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        options: TcpOptions = placed.model.tcp
        to = peers.targets(scene, placed)
        own = {"nodelay": options.nodelay, "reconnect_ns": options.reconnect, "queue": options.queue}
        software = Software(
            placed.name,
            peers.role(placed),
            placed.kind,
            session=peers.session(scene, placed, PATIENCE_NS),
            spec={**peers.spec(scene, placed, to), "timeout_ns": timeout_ns(placed), **own},
            ports=peers.ports(placed, to),
        )
        receivers = {peers.set_name(placed): tuple(one.endpoint for one in to)} if to else {}
        yield Planned(
            software, tuple(flows(scene, placed, peers.deliveries(placed, to, GUARANTEE))), receivers
        )


def _words(software: Software, sent: Sequence[Flow]) -> str:
    nodelay = ", no delay" if software.spec["nodelay"] else ""
    if software.spec["listen"] is not None:
        return f"TCP, listens on port {software.spec['listen']}{nodelay}"
    return "; ".join([f"TCP{nodelay}", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the costs at worst: each segment of messages and answers is acknowledged alone."""
    to = len(software.spec["to"])
    packets: list[tuple[float, int]] = [(to * _CONNECTION_PACKETS, TCP_HEADERS_BYTES)]
    for flow in sent:
        for payload in (flow.payload, flow.reply):
            if payload is not None:
                each = receivers_of_each(flow, to) * expected_messages(flow)
                count = each * -(-(_LENGTH_BYTES + payload.bytes) // TCP_SEGMENT_BYTES)
                length = min(_LENGTH_BYTES + payload.bytes, TCP_SEGMENT_BYTES)
                packets += [(count, TCP_HEADERS_BYTES + length), (count, TCP_HEADERS_BYTES)]
    return Costs(files_at={"server": 1} if to else {}, peers=to, packets=tuple(packets))


KIND = Kind(
    name="tcp",
    key="tcp",
    model=Tcp,
    what="messages over TCP",
    example="tcp: {listen: 9001}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    ramp=lambda model: None if model.tcp.listen is not None else 1,
    binds=lambda model: (Bind("tcp", model.tcp.listen, ("tcp", "listen")),) if model.tcp.listen else (),
    titles={"TcpOptions": "software.NAME.tcp: messages over TCP"},
)
