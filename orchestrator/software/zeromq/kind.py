"""Defines the registry entry of ZeroMQ: its description for readers, its costs and the ports it uses."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ..kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES, Bind, Costs, Kind
from ..messages import flow_words
from ..sending import expected_messages, rate_words, receivers_of_each
from .checks import check
from .file import PARTNERS, Zeromq, socket_of
from .planning import plan

_LIBRARY_BYTES = 6_000_000  # measured memory of a process with libzmq and its threads
_FRAME_BYTES = 9  # bytes before each part of a message, with a 64-bit length (ZMTP 3.1)


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    over = "PGM" if spec["transport"] == "epgm" else "TCP"
    name = f"ZeroMQ {str(spec['socket']).upper()} over {over}"
    if spec["socket"] not in PARTNERS:
        return f"{name}, connects to {spec['address']}:{spec['port']}"
    return "; ".join([f"{name}, port {spec['port']}", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the packets at worst: each TCP segment is acknowledged alone; with multicast one packet
    serves all receivers.
    """
    to = len(software.spec.get("to", ()))
    multicast = software.spec["transport"] == "epgm"
    packets: list[tuple[float, int]] = []
    for flow in sent:
        each = receivers_of_each(flow, to)
        for copies, payload in ((1 if multicast else each, flow.payload), (each, flow.reply)):
            if payload is not None:
                whole = _FRAME_BYTES + payload.bytes
                count = copies * expected_messages(flow) * -(-whole // TCP_SEGMENT_BYTES)
                packets += [
                    (count, TCP_HEADERS_BYTES + min(whole, TCP_SEGMENT_BYTES)),
                    (count, TCP_HEADERS_BYTES),
                ]
    return Costs(_LIBRARY_BYTES, {"server": 2} if not to else {}, to or 1, multicast, tuple(packets))


def _binds(model: Zeromq) -> Sequence[Bind]:
    options = model.zeromq
    found = [(key, getattr(options, key)) for key in ("router", "pub", "answers")]
    transport = "udp" if options.transport == "epgm" else "tcp"
    return tuple(
        Bind("tcp" if key == "answers" else transport, port, (KIND.name, key))
        for key, port in found
        if port is not None
    )


KIND = Kind(
    name="zeromq",
    key="zeromq",
    model=Zeromq,
    what="a socket of ZeroMQ",
    example="zeromq: {dealer: utility}",
    check=check,
    plan=plan,
    words=_words,
    costs=_costs,
    ramp=lambda model: None if socket_of(model.zeromq) in PARTNERS else 0,
    binds=_binds,
    programs=(
        Program(
            "libzmq.so.5",
            "libzmq5",
            ("dpkg-query", "-W", "-f", "${Version}", "libzmq5"),
            "topologies with zeromq fail when their nodes start",
        ),
    ),
    titles={"ZeromqOptions": "software.NAME.zeromq: a socket of ZeroMQ"},
)
