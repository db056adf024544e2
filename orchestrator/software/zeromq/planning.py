"""Plans ZeroMQ sockets: their connections, delivery guarantees, and the agent's settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Delivery, Guarantee, Note, Session, Software
from contract.plan.family import has_ipv6

from ..kind import Planned
from ..messages import flows, timeout_ns
from ..scene import Placed, Scene
from ..tcp import PATIENCE_NS
from .file import PARTNERS, ZeromqOptions, socket_of

_TPDU_MORE_BYTES = 20  # measured: libzmq's TPDU of 133 bytes makes IP packets of 113 bytes
ROUTED = Guarantee(
    "ZeroMQ ROUTER/DEALER",
    "ZeroMQ ROUTER/DEALER: while the connection lasts, no message is lost, delivered twice or overtaken",
    lossless=True,
    single=True,
    ordered=True,
    while_session=True,
)
PUBLISHED = Guarantee(
    "ZeroMQ PUB/SUB",
    "ZeroMQ PUB/SUB: no message is delivered twice or overtaken; those beyond a queue are lost",
    single=True,
    ordered=True,
)
MULTICAST = Guarantee(
    "ZeroMQ PUB/SUB over PGM",
    "ZeroMQ PUB/SUB over PGM: no message is delivered twice or overtaken; what no repair brings is lost",
    single=True,
    ordered=True,
)


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every ZeroMQ socket of the lab, in the order given."""
    for placed in all_of_it:
        options: ZeromqOptions = placed.model.zeromq
        if socket_of(options) in PARTNERS:
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
        partner = PARTNERS[socket_of(options)]
        remedy = f"write `software: {{in: {{zeromq: {{{partner}: {placed.node}}}}}}}` somewhere"
        note = Note(f"nodes.{placed.node}.{placed.name}", "no client connects, so nothing is sent", remedy)
        return Planned(software, notes=(note,))
    name = f"{placed.node}'s {placed.name} by {placed.kind}"
    heard_ns = max(one.connect_ns for one in mine)
    sent = tuple(flows(scene, placed, (Delivery(name, _guarantee(options)),), heard_ns))
    return Planned(software, sent, {name: tuple(one.endpoint for one in mine)})


def _receiver(scene: Scene, placed: Placed, all_of_it: Sequence[Placed]) -> Planned:
    binder = _binder(placed, all_of_it)
    assert binder is not None, "the check has seen it"
    spec = _spec(scene, placed, binder) | {
        "address": scene.address(binder.node, placed.node),
        "receive_queue": placed.model.zeromq.receive_queue,
        "timeout_ns": 0,
    }
    patience_ns = None if binder.model.zeromq.transport == "epgm" else PATIENCE_NS
    session = Session(placed.endpoint, placed.connect_ns, scene.end_ns, patience_ns=patience_ns)
    return Planned(Software(placed.name, "client", placed.kind, session=session, spec=spec))


def _binder(placed: Placed, all_of_it: Sequence[Placed]) -> Placed | None:
    """Returns the socket that `placed` connects to; None if `placed` binds."""
    for binds, connects in PARTNERS.items():
        if (name := getattr(placed.model.zeromq, connects)) is not None:
            there = (one for one in all_of_it if one.node == name)
            return next(one for one in there if getattr(one.model.zeromq, binds) is not None)
    return None


def _spec(scene: Scene, placed: Placed, binder: Placed) -> dict[str, Any]:
    """Returns the agent's settings of one side of a connection, taken from the options of the side that
    binds.
    """
    options: ZeromqOptions = binder.model.zeromq
    spec: dict[str, Any] = {
        "socket": socket_of(placed.model.zeromq),
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


def _guarantee(options: ZeromqOptions) -> Guarantee:
    if options.transport == "epgm":
        return MULTICAST
    return PUBLISHED if options.pub is not None else ROUTED
