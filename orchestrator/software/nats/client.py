"""Defines the client of NATS, and checks and plans it: subjects, queue groups, and the receivers of each
message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from contract.plan import Delivery, Flow, Guarantee, Payload, Session, Software

from ...language.dscp import Dscp, marks
from ...language.scalars import Base, Duration, text
from ...language.source import Path
from ..brokers import (
    BrokerNode,
    BrokerPort,
    ClientPcp,
    PayloadSize,
    Queue,
    Reconnect,
    Traffic,
    check_broker,
    client_costs,
    name_at,
    port_at,
)
from ..checking import Checks, Here
from ..encodings import Encoded, check_encoded, payload_of
from ..kind import Costs, Kind, Planned
from ..messages import SMALLEST_BYTES
from ..placeholders import REMEDY, fill_for, unknown
from ..scene import Placed, Scene
from ..sending import Sending, check_sending, make_flow, rate_words

PROTOCOL = "nats"  # name of the protocol in brokers and the reducer
SMALLEST_PAYLOAD = {"bytes": SMALLEST_BYTES, "metering-xml": 256}
LARGEST_PAYLOAD = 1 << 20  # the server's default of max_payload
LONGEST_SUBJECT = 250
ONE, REST = "*", ">"
PINGS = 2  # after this many PINGs without an answer, the connection has failed
GUARANTEE = Guarantee(
    "NATS", "NATS: at most once, so no message is delivered twice", single=True, while_session=True
)
_TRAFFIC = Traffic((16, 120), message_bytes=30, answers=1, answer_bytes=0)
MEMORY_AT_BROKER_BYTES = 60_000


class NatsPublish(Sending, Encoded):
    """Messages of a NATS client in an open loop: they are due by the clock, whether or not the last message
    has arrived.
    """

    subject: str = Field(
        min_length=1,
        description="May contain {node}, {group}, {index}, {next} and {previous} (both wrap around).",
    )
    payload: Literal["bytes", "metering-xml"] = Field("bytes", description="Content of the payload.")
    payload_size: PayloadSize = text("717 B")
    queue: Queue = 1000


class NatsOptions(Base):
    """One client of NATS; the node's agent implements the protocol and accounts for every message."""

    broker: BrokerNode
    port: BrokerPort = None
    user: str | None = Field(None, description="Login; without it none.")
    password: str = Field("", description="Password of the login.")
    ping: Duration = Field(
        text("120 s"),
        description=f"Interval of the client's PINGs; {PINGS} without an answer end the connection.",
    )
    reconnect: Reconnect = text("1 s")
    dscp: Dscp | None = Field(None, description="DSCP of the client's packets.")
    pcp: ClientPcp = None
    publish: NatsPublish | None = Field(None, description="Messages that the client sends.")
    subscribe: list[str] = Field(
        default_factory=list,
        description="Subjects, with the placeholders of `publish.subject`, * (one word) and > (all further "
        "words).",
    )
    group: str | None = Field(
        None,
        pattern=r"^[!-~]+$",
        max_length=LONGEST_SUBJECT,
        description="Queue group: each message reaches one of its members.",
    )


class Nats(Base):
    """A NATS client."""

    nats: NatsOptions = Field(description="The client.")


def _check(report: Checks, here: Here, client: Nats) -> None:
    nats, path = client.nats, (*here.path, "nats")
    if nats.publish is None and not nats.subscribe:
        report.add(path, None, "neither publishes nor subscribes", "write `publish:` or `subscribe:`")
    if nats.group is not None and not nats.subscribe:
        report.add(
            (*path, "group"), nats.group, "is a key of subscriptions, and the client has none", "leave it out"
        )
    if nats.user is None and nats.password:
        report.add((*path, "password"), None, "has no user", "write `user:` too")
    service = check_broker(
        report, here, (*path, "broker"), nats.broker, nats.port, PROTOCOL, "{b: {broker: nats-server}}"
    )
    if service is not None and service.users is not None and not service.own_config:
        admitted = nats.user is not None and service.users.get(nats.user) == nats.password
        if not admitted:
            rule = f"the broker of {nats.broker} does not admit this login"
            report.add((*path, "user"), nats.user, rule, "write a user and password of its `users:`")
    for index, subject in enumerate(nats.subscribe):
        at = (*path, "subscribe", index)
        _subject(report, at, subject, wild=True)
        if nats.group is None and any(_overlap(subject, other) for other in nats.subscribe[:index]):
            rule = "overlaps another subject of this client, which would get such messages twice"
            report.add(at, subject, rule, "leave one of them out, or write a second `nats` software")
    if (wanted := nats.publish) is not None:
        at = (*path, "publish")
        _subject(report, (*at, "subject"), wanted.subject, wild=False)
        check_sending(report, here, wanted, at, "leave `publish` out for a client that is silent")
        smallest = SMALLEST_PAYLOAD[wanted.payload]
        encoded = check_encoded(report, wanted, at, "payload_size", "payload")
        if not encoded and not smallest <= wanted.payload_size <= LARGEST_PAYLOAD:
            rule = f"a {wanted.payload} payload has from {smallest} to {LARGEST_PAYLOAD} bytes"
            report.add((*at, "payload_size"), wanted.payload_size, rule, 'write for example "717 B"')


def _subject(report: Checks, path: Path, subject: str, wild: bool) -> None:
    for name in unknown(subject):
        report.add(path, subject, f"no placeholder is called {{{name}}}", REMEDY)
    words = subject.split(".")
    if len(subject) > LONGEST_SUBJECT or not all(words) or any(not "!" <= sign <= "~" for sign in subject):
        rule = f"is no subject: words of printable ASCII with dots between, {LONGEST_SUBJECT} bytes at most"
        report.add(path, subject, rule, "write for example meters.north.1")
    elif not wild and {ONE, REST} & set(words):
        report.add(path, subject, "a message's subject has no wildcards", "name one subject")
    elif wild and REST in words[:-1]:
        report.add(path, subject, f"{REST} stands for all further words", f"write it last: meters.{REST}")


def matches(pattern: str, subject: str) -> bool:
    """Returns whether a subscription with wildcards receives the messages of a subject."""
    words, parts = subject.split("."), pattern.split(".")
    if parts[-1] == REST:
        return len(words) >= len(parts) and _same(parts[:-1], words[: len(parts) - 1])
    return len(words) == len(parts) and _same(parts, words)


def _same(parts: Sequence[str], words: Sequence[str]) -> bool:
    return all(part in (ONE, word) for part, word in zip(parts, words, strict=True))


def _overlap(one: str, other: str) -> bool:
    """Returns whether some subject matches both patterns."""
    words, parts = one.split("."), other.split(".")
    for word, part in zip(words, parts, strict=False):
        if REST in (word, part):
            return True
        if ONE not in (word, part) and word != part:
            return False
    return len(words) == len(parts)


def _broker(scene: Scene, client: Placed) -> str:
    return name_at(scene, client.model.nats.broker, client.model.nats.port, PROTOCOL)


def _subjects(scene: Scene, client: Placed) -> tuple[str, ...]:
    found = (fill_for(scene, client, one) for one in client.model.nats.subscribe)
    return tuple(dict.fromkeys(found))


def _plan(scene: Scene, clients: Sequence[Placed]) -> Iterator[Planned]:
    for client in clients:
        nats: NatsOptions = client.model.nats
        software = _software(scene, client)
        if nats.publish is None:
            yield Planned(software, relay=nats.broker)
            continue
        yield _published(scene, client, clients, nats.publish, software)


def _software(scene: Scene, client: Placed) -> Software:
    nats: NatsOptions = client.model.nats
    port = port_at(scene, nats.broker, nats.port, PROTOCOL)
    patience_ns = (PINGS + 1) * nats.ping
    session = Session(client.endpoint, client.connect_ns, scene.end_ns, patience_ns=patience_ns)
    spec: dict[str, Any] = {
        "broker": scene.address(nats.broker, client.node),
        "port": port,
        "user": nats.user,
        "password": nats.password,
        "ping_ns": nats.ping,
        "reconnect_ns": nats.reconnect,
        "publish": None,
        "subscribe": list(_subjects(scene, client)),
        "group": nats.group,
        **marks(nats),
    }
    if (wanted := nats.publish) is not None:
        spec["publish"] = {"subject": fill_for(scene, client, wanted.subject), "queue": wanted.queue}
    return Software(client.name, "client", client.kind, session=session, spec=spec, ports={PROTOCOL: (port,)})


def _published(
    scene: Scene, client: Placed, clients: Sequence[Placed], wanted: NatsPublish, software: Software
) -> Planned:
    subject, broker = fill_for(scene, client, wanted.subject), _broker(scene, client)
    heard = [
        one
        for one in clients
        if one is not client
        and _broker(scene, one) == broker
        and any(matches(s, subject) for s in _subjects(scene, one))
    ]
    alone = tuple(sorted(one.endpoint for one in heard if one.model.nats.group is None))
    groups: dict[str, tuple[str, ...]] = {}
    for one in heard:
        if (name := one.model.nats.group) is not None:
            group = f"queue group {name} at {broker}"
            groups[group] = (*groups.get(group, ()), one.endpoint)
    receivers = {f"{subject} at {broker}": alone} if alone else {}
    receivers |= {f"{subject} at {broker}: {group}": (group,) for group in groups}
    flow = make_flow(
        scene,
        client,
        wanted,
        payload_of(wanted, Payload(wanted.payload, wanted.payload_size)),
        pattern="publish",
        deliveries=tuple(Delivery(name, GUARANTEE) for name in receivers),
        heard_ns=max((one.connect_ns for one in heard), default=0),
        topic=subject,
    )
    return Planned(software, (flow,), receivers, relay=client.model.nats.broker, shared=groups)


def _words(software: Software, flows: Sequence[Flow]) -> str:
    words, spec = ["NATS"], software.spec
    words += [f"publishes {flow.payload.bytes} B to {flow.topic}, {rate_words(flow)}" for flow in flows]
    if spec["subscribe"]:
        group = f" in the queue group {spec['group']}" if spec["group"] else ""
        count = len(spec["subscribe"])
        subjects = spec["subscribe"][0] if count == 1 else f"{count} subjects"
        words.append(f"subscribes {subjects}{group}")
    return "; ".join(words)


def _costs(_software: Software, flows: Sequence[Flow]) -> Costs:
    return client_costs(MEMORY_AT_BROKER_BYTES, flows, _TRAFFIC)


KIND = Kind(
    name="nats",
    key="nats",
    model=Nats,
    what="a NATS client",
    example="nats: {broker: server, subscribe: [meters.>]}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    ramp=lambda client: int(client.nats.publish is not None),
    titles={"NatsOptions": "software.NAME.nats: a NATS client", "NatsPublish": "nats.publish"},
)
