"""Defines the keys of CoAP, and checks and plans it: requests and pushes that are confirmed or not, resources
that clients observe, and long bodies in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Payload, Software

from ..language.scalars import Base, Duration, Positive, Size, Span, text
from ..language.source import Path
from . import peers
from .checking import Checks, Here
from .encodings import payload_of
from .kind import UDP_HEADERS_BYTES, Bind, Costs, Kind, Planned
from .messages import PAYLOAD, Push, Request, Stream, check_messages, flow_words, flows, timeout_ns
from .scene import Placed, Scene
from .sending import expected_messages, make_flow, rate_words, receivers_of_each

PROTOCOL = "coap"  # the reducer's name
LARGEST_BYTES = 1 << 20  # of a whole body
BLOCKS = (16, 32, 64, 128, 256, 512, 1024)  # RFC 7959, 2.2
OF_CLIENT = ("path", "nstart", "queue")
CONFIRMABLE = Guarantee(
    "CoAP confirmable",
    "CoAP confirmable: sent again until it is acknowledged or given up; a receiver that runs gets no message "
    "twice",
    single=True,
    while_session=True,
)
NON_CONFIRMABLE = Guarantee(
    "CoAP non-confirmable",
    "CoAP non-confirmable: sent once; a receiver that runs gets no message twice",
    single=True,
    while_session=True,
)
# RFC 7252, 4.8.2: the longest way of a datagram, and the time in which no Message ID is used twice.
LATENCY_NS, LIFETIME_NS = 100 * 10**9, 247 * 10**9
IDENTIFIERS = 1 << 16
_AROUND_BYTES = 24  # header, token, options except the path, and the marker before the payload


class CoapRequest(Request):
    """Requests of CoAP: a POST each, whose answer has the reply."""

    timeout: Span = Field(
        text("93 s"),
        description="Longest wait for an answer; by default MAX_TRANSMIT_WAIT of the standard (RFC 7252).",
    )


class CoapOptions(peers.MarkedPeer):
    """CoAP over UDP, spoken by the node's agent, every message accounted for."""

    request: CoapRequest | None = Field(None, description="to: requests that each server answers.")
    push: Push | None = Field(None, description="to: messages without a reply.")
    observe: Literal[True] | None = Field(
        None, description="to: observe the servers' resource (RFC 7641); they have `notify`."
    )
    notify: Stream | None = Field(
        None, description="listen: states of the resource, each of which its observers are notified of."
    )
    confirmable: bool = Field(
        True,
        description="Send requests, pushes or notifications as confirmable messages (CON): again until they "
        "are acknowledged; no: as non-confirmable ones (NON), once.",
    )
    block: Size = Field(
        text("1024 B"),
        description="Size of blocks, 16 B to 1024 B, a power of two: longer bodies are sent in blocks "
        "(RFC 7959).",
    )
    path: str = Field(
        "messages",
        pattern=r"^[A-Za-z0-9._~/-]+$",
        max_length=255,
        description="to: path of the resource; the server has one resource at all its paths.",
    )
    ack_timeout: Duration = Field(
        text("2 s"),
        description="ACK_TIMEOUT: the first wait for an acknowledgement, times 1 to 1.5; each further one is "
        "twice the one before.",
    )
    max_retransmit: int = Field(
        4, ge=0, le=20, description="MAX_RETRANSMIT: how often a confirmable message is sent again."
    )
    nstart: Positive = Field(
        1, le=65535, description="to: NSTART, the most messages to a server that wait for answers at once."
    )
    queue: Positive = Field(
        1000, le=2**31 - 1, description="to: messages to a server that may wait for their turn."
    )


class Coap(Base):
    """The software key `coap`: a server or a client."""

    coap: CoapOptions = Field(description="The side.")


def _flows_of(options: CoapOptions) -> dict[str, Push]:
    found = {"request": options.request, "push": options.push, "notify": options.notify}
    return {key: one for key, one in found.items() if one is not None}


def _check(report: Checks, here: Here, model: Coap) -> None:
    options, path = model.coap, (*here.path, KIND.name)
    peers.check_peer(report, here, options, KIND.name, ("request", "push", "observe"))
    if options.block not in BLOCKS:
        rule = "is not 16 B, 32 B, 64 B, ... or 1024 B"
        report.add((*path, "block"), f"{options.block} B", rule, 'write for example "256 B"')
    for key, wanted in _flows_of(options).items():
        check_messages(report, here, wanted, (*path, key), LARGEST_BYTES)
        _check_rate(report, here, options, wanted, (*path, key))
    if options.listen is not None:
        for key in OF_CLIENT:
            if key in options.model_fields_set:
                rule = "does not belong to the side that listens"
                report.add((*path, key), None, rule, "write it where `to` is")
        return
    if options.notify is not None:
        rule = "belongs to the side that listens"
        report.add((*path, "notify"), None, rule, "write it where `listen` is, and `observe: true` here")
    if (push := options.push) is not None and not options.confirmable and _blocks(options, push) > 1:
        rule = (
            f"a push that is not confirmed has no answers, and so no blocks: {options.block} B are the most"
        )
        report.add((*path, "push"), None, rule, "write `confirmable: true`, or a smaller `size`")
    if options.observe:
        _check_observed(report, options, path)


def _check_observed(report: Checks, options: CoapOptions, path: Path) -> None:
    for name in options.to or ():
        for node in report.machines((*path, "to"), name):
            found = [peers.options_of(one, KIND.name) for one in report.programs(node).values()]
            servers = [one for one in found if one is not None and one.listen is not None]
            if servers and all(one.notify is None for one in servers if options.port in (None, one.listen)):
                rule = f"the coap software of {node} has nothing to observe"
                report.add((*path, "observe"), None, rule, "write `notify: {size: 100 B, rate: 1 /s}` there")
                return


def _lifetime_ns(options: CoapOptions) -> int:
    """Returns EXCHANGE_LIFETIME (RFC 7252, 4.8.2) in nanoseconds."""
    sent_ns = int(options.ack_timeout * 1.5) * (2**options.max_retransmit - 1)
    return int(max(LIFETIME_NS, sent_ns + 2 * LATENCY_NS + options.ack_timeout))


def _blocks(options: CoapOptions, wanted: Push) -> int:
    """Returns the number of messages that each message of a flow takes with its answer's further blocks."""
    size = payload_of(wanted, Payload(PAYLOAD, wanted.size or 0)).bytes
    reply = wanted.reply if isinstance(wanted, Request) else 0
    return max(-(-size // options.block), 1) + max(-(-reply // options.block) - 1, 0)


def _check_rate(report: Checks, here: Here, options: CoapOptions, wanted: Push, path: Path) -> None:
    """Reports a rate for which the Message IDs do not suffice."""
    most = IDENTIFIERS / (_lifetime_ns(options) / 1e9)
    share = len(here.nodes) if wanted.rate_of == "group" else 1
    each = wanted.burst * _blocks(options, wanted) / share
    for index, step in enumerate(wanted.rate):
        if wanted.spread == "all" and step.rate * each > most:
            rule = (
                f"has more than {int(most)} CoAP messages a second to a receiver: each of the {IDENTIFIERS} "
                f"Message IDs is used once in {_lifetime_ns(options) // 10**9} s"
            )
            remedy = "send less often, or from more nodes"
            report.add((*path, "rate", index, "rate"), f"{step.rate:g} /s", rule, remedy)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    to = {placed.endpoint: peers.targets(scene, placed) for placed in all_of_it}
    for placed in all_of_it:
        options: CoapOptions = placed.model.coap
        targets = to[placed.endpoint]
        observers = [
            one
            for one in all_of_it
            if one.model.coap.observe and any(t.endpoint == placed.endpoint for t in to[one.endpoint])
        ]
        guarantee = CONFIRMABLE if options.confirmable else NON_CONFIRMABLE
        sent = list(flows(scene, placed, peers.deliveries(placed, targets, guarantee)))
        receivers = {peers.set_name(placed): tuple(t.endpoint for t in targets)} if sent else {}
        if options.notify is not None:
            name = f"who observes {placed.endpoint}"
            sent.append(_notifications(scene, placed, options.notify, Delivery(name, guarantee), observers))
            if observers:
                receivers[name] = tuple(one.endpoint for one in observers)
        known = (options.listen,) if options.listen is not None else (t.port for t in targets)
        software = Software(
            placed.name,
            peers.role(placed),
            placed.kind,
            session=peers.session(scene, placed),
            spec=_spec(scene, placed, targets, len(observers)),
            ports={PROTOCOL: tuple(sorted(set(known)))},
        )
        yield Planned(software, tuple(sent), receivers)


def _notifications(
    scene: Scene, placed: Placed, wanted: Stream, to: Delivery, observers: Sequence[Placed]
) -> Flow:
    return make_flow(
        scene,
        placed,
        wanted,
        payload_of(wanted, Payload(PAYLOAD, wanted.size or 0)),
        pattern="stream",
        deliveries=(to,) if observers else (),
        heard_ns=max((one.connect_ns for one in observers), default=0),
        spread=wanted.spread,
    )


def _spec(scene: Scene, placed: Placed, to: Sequence[peers.Target], observers: int) -> dict[str, Any]:
    options: CoapOptions = placed.model.coap
    return {
        **peers.spec(scene, placed, to),
        "confirmable": options.confirmable,
        "block": BLOCKS.index(options.block),
        "path": [part for part in options.path.split("/") if part],
        "nstart": options.nstart,
        "queue": options.queue,
        "timeout_ns": timeout_ns(placed),
        "observe": bool(options.observe),
        "observers": observers,
        "ack_timeout_ns": options.ack_timeout,
        "max_retransmit": options.max_retransmit,
        "seed": scene.seed_for("coap", placed.node, placed.name),
    }


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    words = ["CoAP" if spec["confirmable"] else "CoAP, non-confirmable"]
    if spec["listen"] is not None:
        words[0] += f", listens on port {spec['listen']}"
        notified = [f"notifies {spec['observers']} of {f.payload.bytes} B, {rate_words(f)}" for f in sent]
        return "; ".join([*words, *notified])
    words += [flow_words(flow, rate_words(flow)) for flow in sent]
    return "; ".join([*words, f"observes {len(spec['to'])}"] if spec["observe"] else words)


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the costs without retransmission: blocks, and an answer or acknowledgement of each."""
    spec, packets = software.spec, list[tuple[float, int]]()
    block, around = BLOCKS[spec["block"]], UDP_HEADERS_BYTES + _AROUND_BYTES + sum(map(len, spec["path"]))
    for flow in sent:
        several = (
            spec["observers"] if spec["listen"] is not None else receivers_of_each(flow, len(spec["to"]))
        )
        each = several * expected_messages(flow)
        for octets in (flow.payload.bytes, flow.reply.bytes if flow.reply is not None else 0):
            count = each * -(-octets // block)
            packets += [(count, around + min(octets, block)), (count, around)]
    return Costs(peers=len(spec["to"]) or spec["observers"], packets=tuple(packets))


KIND = Kind(
    name="coap",
    key="coap",
    model=Coap,
    what="a side of CoAP",
    example="coap: {listen: 5683}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    ramp=lambda model: None if model.coap.listen is not None else int(bool(_flows_of(model.coap))),
    binds=lambda model: (Bind("udp", model.coap.listen, ("coap", "listen")),) if model.coap.listen else (),
    titles={"CoapOptions": "software.NAME.coap: CoAP", "CoapRequest": "coap.request"},
)
