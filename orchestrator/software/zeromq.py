"""Room of ZeroMQ: a ROUTER with its DEALERs, a PUB with its SUBs, over TCP or reliable multicast (PGM)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from ..language.scalars import Address4, Base, Duration, Name, Port, Positive, Rate, Size
from ..language.source import Path
from ..model import Delivery, Flow, Note, Program, Promise, Session, Software
from ..model.family import has_ipv6
from .checking import Checks, Here, joined
from .kind import Bind, Costs, Kind, Planned
from .messages import PATTERNS, Push, Request, Stream, check_messages, flow_words, flows, timeout_ns
from .scene import Placed, Scene
from .sending import expected_messages, rate_words, receivers_of_each

PARTNERS = {"router": "dealer", "pub": "sub"}  # who binds and sends -> who connects and answers
LARGEST_BYTES = 1 << 20
GROUP = "239.192.0.1"  # of the organisation's own: RFC 2365
_TPDU_MORE_BYTES = 20  # libzmq's TPDU of 133 bytes makes IP packets of 113: measured
_LIBRARY_BYTES = 6_000_000  # of a process with libzmq and its threads, measured
_HEADER_BYTES = 66  # Ethernet 14, IPv4 20, TCP 20 and timestamps 12
_FRAME_BYTES = 9  # before each part of a message: ZMTP 3.1, 64-bit length
_SEGMENT_BYTES = 1448  # of payload, at an MTU of 1500
# As of TCP: what was sent so long ago has arrived or ended the connection (tcp_retries2).
_PATIENCE_NS = 924_600_000_000
ROUTED = Promise(
    "ZeroMQ ROUTER/DEALER",
    "ZeroMQ ROUTER/DEALER: while the connection lasts, no message is lost, delivered twice or overtaken",
    lossless=True,
    single=True,
    ordered=True,
    while_session=True,
)
PUBLISHED = Promise(
    "ZeroMQ PUB/SUB",
    "ZeroMQ PUB/SUB: no message is delivered twice or overtaken; those beyond a queue are lost",
    single=True,
    ordered=True,
)
MULTICAST = Promise(
    "ZeroMQ PUB/SUB over PGM",
    "ZeroMQ PUB/SUB over PGM: no message is delivered twice or overtaken; what no repair brings is lost",
    single=True,
    ordered=True,
)


class ZeromqOptions(Base):
    """One socket: `router` and `pub` bind and send, `dealer` and `sub` connect to them and answer."""

    router: Port | None = Field(
        None, description="A ROUTER on this port: it sends to every DEALER by its name."
    )
    dealer: Name | None = Field(None, description="A DEALER of the node that has the ROUTER.")
    pub: Port | None = Field(None, description="A PUB on this port: every SUB gets every message.")
    sub: Name | None = Field(None, description="A SUB of the node that has the PUB.")
    transport: Literal["tcp", "epgm"] = Field(
        "tcp",
        description="pub: epgm is reliable multicast (PGM in UDP), so each message leaves once for all.",
    )
    group: Address4 = Field(GROUP, description="epgm: the multicast group.")
    rate_limit: Rate | None = Field(
        None, description="epgm: it sends no faster, repairs included; libzmq's own is 100 kbit/s."
    )
    recovery: Duration | None = Field(
        None, description="epgm: how long lost data can be asked for; libzmq's own is 10 s."
    )
    tpdu: Size | None = Field(
        None, description="epgm: the longest packet, its IP header included; libzmq's own is 1500 B."
    )
    answers: Port | None = Field(
        None,
        description="A REP on this port takes the answers, one at a time from each REQ; without it a DEALER "
        "answers by its own connection.",
    )
    send_queue: Positive | None = Field(
        None, le=2**31 - 1, description="Messages for each receiver; libzmq's own is 1000."
    )
    receive_queue: Positive | None = Field(
        None, le=2**31 - 1, description="Messages that wait to be read; libzmq's own is 1000."
    )
    request: Request | None = Field(None, description="Messages that each receiver answers.")
    push: Push | None = Field(None, description="Messages that nobody answers.")
    stream: Stream | None = Field(None, description="A continuous feed.")


class Zeromq(Base):
    """One socket of ZeroMQ."""

    zeromq: ZeromqOptions = Field(description="The socket.")


def _socket(options: ZeromqOptions) -> str:
    found = [key for key in ("router", "dealer", "pub", "sub") if getattr(options, key) is not None]
    return found[0] if len(found) == 1 else ""


def _check(report: Checks, here: Here, model: Zeromq) -> None:
    options, path = model.zeromq, (*here.path, KIND.name)
    socket = _socket(options)
    if not socket:
        rule = "has exactly one of the keys router, dealer, pub and sub"
        report.add(path, None, rule, "write `router: PORT` where it sends, `dealer: NODE` where it receives")
    elif socket in PARTNERS:
        _check_sender(report, here, options, path)
    else:
        _check_receiver(report, here, options, path, socket)


def _check_sender(report: Checks, here: Here, options: ZeromqOptions, path: Path) -> None:
    said = [key for key in PATTERNS if getattr(options, key) is not None]
    if not said:
        report.add(
            path, None, "binds, but does not say what it sends", "write `request:`, `push:` or `stream:`"
        )
    for key in said:
        check_messages(report, here, getattr(options, key), (*path, key), LARGEST_BYTES)
        if options.pub is not None and getattr(options, key).spread != "all":
            rule = "a PUB sends every message to all"
            report.add((*path, key, "spread"), "round-robin", rule, "leave it out, or write `router:`")
    if options.answers is not None and options.answers in (options.router, options.pub):
        rule = "is the port that the socket itself listens on"
        report.add((*path, "answers"), options.answers, rule, "choose another port")
    multicast = options.transport == "epgm"
    if multicast and options.pub is None:
        report.add((*path, "transport"), "epgm", "goes with `pub` alone", "write `transport: tcp`")
    for setting in ("group", "rate_limit", "recovery", "tpdu"):
        if setting in options.model_fields_set and not multicast:
            remedy = "write `transport: epgm`, or leave it out"
            report.add((*path, setting), None, "belongs to multicast", remedy)
    for node in here.nodes if multicast else ():
        if "IPv6" in report.families(node):
            rule = f"multicast here is of IPv4, and {node} has addresses of IPv6"
            report.add((*path, "transport"), "epgm", rule, "write `transport: tcp`, or IPv4 subnets")
            break
    if not ipaddress.IPv4Address(options.group).is_multicast:
        rule = "is no multicast address (224.0.0.0 to 239.255.255.255)"
        report.add((*path, "group"), options.group, rule, f"write for example {GROUP}")
    if options.pub is not None and options.request is not None and options.answers is None:
        rule = "asks, but a SUB cannot answer by its own socket"
        report.add((*path, "request"), None, rule, "write `answers: PORT`, or `push:`")
    if multicast and options.tpdu is not None:
        _check_tpdu(report, here, options.tpdu, (*path, "tpdu"))


def _check_tpdu(report: Checks, here: Here, tpdu_bytes: int, path: Path) -> None:
    for segment in here.segments:
        mtu = report.mtu(segment)
        if mtu is not None and tpdu_bytes > mtu:
            rule = f"is more than the MTU of {segment}, {mtu} bytes"
            report.add(path, f"{tpdu_bytes} B", rule, f'write at most "{mtu} B"')


def _check_receiver(report: Checks, here: Here, options: ZeromqOptions, path: Path, socket: str) -> None:
    for key in sorted(options.model_fields_set - {socket, "receive_queue"}):
        report.add((*path, key), None, f"does not belong to a {socket}", "write it at the socket that binds")
    wanted = next(binds for binds, connects in PARTNERS.items() if connects == socket)
    name = str(getattr(options, socket))
    if not report.node((*path, socket), name):
        return
    found = [one for one in _of(report, name) if getattr(one, wanted) is not None]
    if len(found) != 1:
        rule = f"{'no' if not found else 'more than one'} {wanted.upper()} runs on node {name}"
        report.add((*path, socket), name, rule, f"write `zeromq: {{{wanted}: 5555, ...}}` there, once")
    elif not joined(report, here, (*path, socket), name, name):
        return
    elif found[0].transport == "epgm" and report.common(here.segments, name) == set():
        rule = f"multicast is not forwarded by routers, and no segment is {name}'s too"
        report.add((*path, socket), name, rule, "put both on one segment, or write `transport: tcp`")


def _of(report: Checks, node: str) -> list[ZeromqOptions]:
    return [model.zeromq for model in report.programs(node).values() if isinstance(model, Zeromq)]


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        options: ZeromqOptions = placed.model.zeromq
        if _socket(options) in PARTNERS:
            yield _sender(scene, placed, all_of_it)
        else:
            yield _receiver(scene, placed, all_of_it)


def _sender(scene: Scene, placed: Placed, all_of_it: Sequence[Placed]) -> Planned:
    options: ZeromqOptions = placed.model.zeromq
    mine = [one for one in all_of_it if _binder(one, all_of_it) is placed]
    spec = _spec(scene, placed, placed) | {
        "to": [one.endpoint for one in mine],
        "send_queue": options.send_queue,
        "receive_queue": options.receive_queue,
        "timeout_ns": timeout_ns(placed),
    }
    session = Session(placed.endpoint, 0, scene.end_ns, listens=True)
    ports: dict[str, tuple[int, ...]] = {}
    if options.transport == "epgm" and options.pub is not None:
        ports["pgm"] = (options.pub,)
    software = Software(placed.name, "server", placed.kind, session=session, spec=spec, ports=ports)
    if not mine:
        remedy = (
            f"write `software: {{in: {{zeromq: {{{PARTNERS[_socket(options)]}: {placed.node}}}}}}}` somewhere"
        )
        note = Note(f"nodes.{placed.node}.{placed.name}", "nobody connects to it, so nothing is sent", remedy)
        return Planned(software, notes=(note,))
    name = f"{placed.node}'s {placed.name} by {placed.kind}"
    heard_ns = max(one.connect_ns for one in mine)
    sent = tuple(flows(scene, placed, (Delivery(name, _promise(options)),), heard_ns))
    return Planned(software, sent, {name: tuple(one.endpoint for one in mine)})


def _receiver(scene: Scene, placed: Placed, all_of_it: Sequence[Placed]) -> Planned:
    binder = _binder(placed, all_of_it)
    assert binder is not None, "the check has seen it"
    spec = _spec(scene, placed, binder) | {
        "address": scene.address(binder.node, placed.node),
        "receive_queue": placed.model.zeromq.receive_queue,
        "timeout_ns": 0,
    }
    patience_ns = None if binder.model.zeromq.transport == "epgm" else _PATIENCE_NS
    session = Session(placed.endpoint, placed.connect_ns, scene.end_ns, patience_ns=patience_ns)
    return Planned(Software(placed.name, "client", placed.kind, session=session, spec=spec))


def _binder(placed: Placed, all_of_it: Sequence[Placed]) -> Placed | None:
    """The socket that `placed` connects to; None of one that binds."""
    for binds, connects in PARTNERS.items():
        if (name := getattr(placed.model.zeromq, connects)) is not None:
            there = (one for one in all_of_it if one.node == name)
            return next(one for one in there if getattr(one.model.zeromq, binds) is not None)
    return None


def _spec(scene: Scene, placed: Placed, binder: Placed) -> dict[str, Any]:
    """What both sides of a connection are told; all of it stands at the one that binds."""
    options: ZeromqOptions = binder.model.zeromq
    spec: dict[str, Any] = {
        "socket": _socket(placed.model.zeromq),
        "transport": options.transport,
        "port": options.router or options.pub,
        "answers": options.answers,
    }
    if has_ipv6(scene.interfaces[placed.node]):
        spec["ipv6"] = True
    if options.transport == "epgm":
        shared = scene.ends(placed.node, binder.node)[0] if placed is not binder else None
        own = shared.address if shared is not None else scene.interfaces[binder.node][0].address
        spec |= {
            "group": options.group,
            "own": own,
            "rate_bps": options.rate_limit,
            "recovery_ns": options.recovery,
            "tpdu_bytes": None if options.tpdu is None else options.tpdu + _TPDU_MORE_BYTES,
        }
    return spec


def _promise(options: ZeromqOptions) -> Promise:
    if options.transport == "epgm":
        return MULTICAST
    return PUBLISHED if options.pub is not None else ROUTED


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    over = "PGM" if spec["transport"] == "epgm" else "TCP"
    name = f"ZeroMQ {str(spec['socket']).upper()} over {over}"
    if spec["socket"] not in PARTNERS:
        return f"{name}, connects to {spec['address']}:{spec['port']}"
    return "; ".join([f"{name}, port {spec['port']}", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """At worst each segment is acknowledged alone; of multicast one packet is enough for all."""
    to = len(software.spec.get("to", ()))
    multicast = software.spec["transport"] == "epgm"
    packets: list[tuple[float, int]] = []
    for flow in sent:
        each = receivers_of_each(flow, to)
        for copies, payload in ((1 if multicast else each, flow.payload), (each, flow.reply)):
            if payload is not None:
                whole = _FRAME_BYTES + payload.bytes
                count = copies * expected_messages(flow) * -(-whole // _SEGMENT_BYTES)
                packets += [(count, _HEADER_BYTES + min(whole, _SEGMENT_BYTES)), (count, _HEADER_BYTES)]
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
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    ramp=lambda model: None if _socket(model.zeromq) in PARTNERS else 0,
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
