"""Defines the keys of an MQTT client in a topology file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from ...language.beside import named_file
from ...language.dscp import Dscp
from ...language.scalars import Base, Duration, Positive, Share, Since, Size, Span, fail, text
from ..brokers import BrokerNode, BrokerPort, ClientPcp, PayloadSize, Queue, Reconnect
from ..encodings import Encoded
from ..sending import Sending
from ..tls.file import ClientTlsKey

PROTOCOL = "mqtt"  # name of MQTT in brokers and the reducer
CARRIERS = {PROTOCOL: "", "tls": "TLS, ", "http": "WebSocket, "}  # text for each value of `spoken`
MOST_IDENTIFIER = 268_435_455  # MQTT 5, 3.8.2.1.2
NEVER_S = 2**32 - 1  # a session expiry interval that never ends (MQTT 5, 3.1.2.11.2)
Qos = Annotated[int, Field(ge=0, le=2)]


class PayloadSizes(Base):
    """Lengths of payloads, drawn by the seed for each message."""

    least: Size = Field(alias="min", description="The shortest payload.")
    most: Size = Field(alias="max", description="The longest payload.")
    mean: Size | None = Field(
        None,
        description=(
            "Mean length of an exponential distribution from `min` on that is cut at `max`; less than "
            "half-way between them. Without it all lengths are equally likely."
        ),
    )


class SparkplugNode(Base):
    """An edge node of Sparkplug B 3.0: its messages are NDATA, which NBIRTH precedes after each login."""

    group_id: str = Field(
        min_length=1, description="Group of the edge node, with the placeholders of `topic`."
    )
    edge_node: str = Field(
        "{node}", min_length=1, description="Name of the edge node, with the placeholders of `topic`."
    )
    metrics: Positive = Field(10, le=1000, description="Metrics (double) in each message.")


class Publish(Sending, Encoded):
    """Messages of an MQTT client in an open loop: they are due by the clock, whether or not the last message
    has arrived.
    """

    topic: str = Field(
        "",
        description="May contain {node}, {group}, {index}, {next} and {previous} (both wrap around), and "
        "{session}. Required, but for `sparkplug`, which determines it.",
    )
    sparkplug: SparkplugNode | None = Field(
        None, description="The client is an edge node of Sparkplug B, in place of `topic` and `payload`."
    )
    qos: Qos = Field(0, description="0: at most once, 1: at least once, 2: exactly once.")
    retain: bool = Field(
        False, description="The broker keeps the topic's newest message for later subscribers."
    )
    message_expiry: Span | None = Field(
        None, description="MQTT 5: how long the broker keeps a message for a receiver, whole seconds."
    )
    topic_alias: bool = Field(
        False,
        description=(
            "MQTT 5: after the first message of a connection a number replaces the topic, if the broker "
            "permits it."
        ),
    )
    user_properties: dict[str, str] = Field(
        default_factory=dict, description="MQTT 5: name: value, in each message."
    )
    payload: Literal["metering-xml", "bytes"] = Field(
        "metering-xml",
        description=(
            "Content of the payload. `bytes` below 28 need MQTT 5: the message's number is then in a user "
            "property."
        ),
    )
    json_text: str | None = Field(
        None,
        alias="json",
        min_length=1,
        description=(
            "MQTT 5: the payload is this JSON text, in place of `payload`; {seq}, {time_ns} and {flow} of "
            "the message and the placeholders of `topic` are replaced. Spaces fill the payload."
        ),
    )
    file: Annotated[Any, named_file("payloads/reading.json")] = Field(
        None, description="MQTT 5: the payload is this file's text, beside the topology."
    )
    payload_size: PayloadSize = text("717 B")
    payload_sizes: PayloadSizes | None = Field(
        None, description="Lengths that differ from message to message, in place of `payload_size`."
    )
    reply: Size | None = Field(
        None,
        description=(
            "MQTT 5: each message is a request, with a response topic and correlation data, and each MQTT 5 "
            "client that subscribes to it replies with so many bytes, at least 28 B."
        ),
    )
    response_topic: str | None = Field(
        None,
        min_length=1,
        description="Topic of the replies, with the placeholders of `topic`; by default answers/ and the "
        "client's name in records.",
    )
    inflight: Positive = Field(20, le=65535, description="Window of unacknowledged QoS 1 and 2 messages.")
    queue: Queue = 1000

    @model_validator(mode="after")
    def _one_topic(self) -> Publish:
        if self.sparkplug is not None and self.topic:
            raise fail("has a `topic` beside `sparkplug`, which determines it", "leave one of them out")
        if self.sparkplug is None and not self.topic:
            raise fail("has no topic", "write for example `topic: meter/{index}`")
        return self


class Absence(Base):
    """A time without the subscription: the client unsubscribes at its beginning, and subscribes again at its
    end.
    """

    since: Since = Field(
        alias="from", description="Moment of the unsubscription, or a duration from the start of the ramp."
    )
    duration: Span | None = Field(None, alias="for", description="By default to the run's end.")


class Subscription(Base):
    """One subscription of an MQTT client."""

    topic: str = Field(
        min_length=1, description="Topic filter, with the placeholders of `publish.topic`, and + and #."
    )
    qos: Qos = Field(0, description="Highest quality of service at which messages are delivered.")
    no_local: bool = Field(False, description="MQTT 5: the client's own messages do not come back to it.")
    retained: Literal["always", "new", "never"] = Field(
        "always",
        description="MQTT 5: retained messages come at each subscription, at a new one only, or never.",
    )
    identifier: Positive | None = Field(
        None,
        le=MOST_IDENTIFIER,
        description="MQTT 5: subscription identifier, which messages of this subscription carry.",
    )
    unsubscribed: list[Absence] = Field(
        default_factory=list,
        description="Times without the subscription, in order and apart; the client has no other one.",
    )


class Will(Base):
    """The message that the broker publishes when it loses the client."""

    topic: str = Field(min_length=1, description="Topic, with the placeholders of `publish.topic`.")
    payload: str = Field("", description="Text of the payload, without placeholders.")
    qos: Qos = 0
    retain: bool = Field(False, description="The broker keeps the message for later subscribers.")
    delay: Span = Field(
        text("0 s"), description="MQTT 5: time that the broker waits for the client's return, whole seconds."
    )


class Churn(Base):
    """Connections that end as planned, each followed by another one."""

    mean: Duration = Field(description="Mean time from an accepted login to the connection's end.")
    times: Literal["exponential", "equal"] = Field(
        "exponential", description="Distribution of these times, drawn by the seed; equal: each is `mean`."
    )
    away: Duration = Field(text("1 s"), description="Time from an end to the next attempt to connect.")
    abrupt: Share = Field(
        text("0 %"),
        description="Share of the ends without DISCONNECT, at which the broker publishes the will.",
    )


class Backoff(Base):
    """Growth of the wait before an attempt to connect with each failed attempt."""

    factor: float = Field(2.0, ge=1, le=100, description="Ratio of one wait to the wait before.")
    limit: Duration = Field(text("60 s"), description="The longest wait, before the jitter.")
    jitter: Share = Field(
        text("20 %"), description="Each wait is longer or shorter by up to this share, drawn by the seed."
    )


def _version(value: Any) -> Any:
    return str(value) if value == 5 and not isinstance(value, bool) else value


_VERSIONS = WithJsonSchema({"title": "version", "enum": ["3.1.1", "5", 5]})
Version = Annotated[Literal["3.1.1", "5"], BeforeValidator(_version), _VERSIONS]


class WebSocket(Base):
    """MQTT over WebSocket (RFC 6455), with TLS or without it."""

    path: str = Field("/mqtt", description="Path of the URL that the client requests.")


def _websocket(value: Any) -> Any:
    return {} if value is True else None if value is False else value


WebSocketKey = Annotated[
    WebSocket | None,
    BeforeValidator(_websocket, json_schema_input_type=WebSocket | bool | None),
    Field(description="Speak MQTT over WebSocket: `true`, or the path of its URL."),
]


class MqttOptions(Base):
    """One MQTT client; the node's agent implements the protocol and accounts for every message."""

    broker: BrokerNode
    port: BrokerPort = None
    version: Version = Field("3.1.1", description="Version of MQTT.")
    client_id: str | None = Field(
        None,
        min_length=1,
        description=(
            "Client identifier, with the placeholders of `publish.topic`; by default the client's name in "
            "records."
        ),
    )
    user: str | None = Field(None, min_length=1, description="User name, with the same placeholders.")
    password: str | None = Field(None, description="The same placeholders.")
    tls: ClientTlsKey = None
    websocket: WebSocketKey = None
    keepalive: Span = Field(text("60 s"), description="MQTT keep alive interval, whole seconds.")
    clean_session: bool = Field(True, description="Start without the state of an earlier connection.")
    session_expiry: Span | None = Field(
        None,
        description=(
            "MQTT 5: time for which the broker keeps the session after a lost connection, whole seconds; "
            "by default for ever with `clean_session: false`, else not at all. With an expiry, only the "
            "first connection starts without state."
        ),
    )
    receive_maximum: Positive | None = Field(
        None, le=65535, description="MQTT 5: limit on unacknowledged messages from the broker to the client."
    )
    admission: Literal["accepted", "refused"] = Field(
        "accepted",
        description=(
            "Expected answer of the broker to the client; a run without that answer ends with exit status 1."
        ),
    )
    reconnect: Reconnect = text("1 s")
    backoff: Backoff | None = Field(None, description="Longer waits after each failed attempt to connect.")
    churn: Churn | None = Field(None, description="The client comes and goes: each connection lasts a time.")
    sessions: Positive = Field(
        1,
        le=50_000,
        description=(
            "Clients that this software stands for, for example of a gateway, each with its own session, "
            "flow and records; `{session}` is the number of each, from 1."
        ),
    )
    will: Will | None = Field(None, description="Message that the broker publishes when it loses the client.")
    dscp: Dscp | None = Field(
        None,
        description=(
            "DSCP of the client's packets; a broker with `reflect_dscp: true` uses it for its own packets "
            "to the client, too."
        ),
    )
    pcp: ClientPcp = None
    publish: Publish | None = Field(None, description="Messages that the client sends.")
    subscribe: list[Subscription] = Field(
        default_factory=list, description="Messages that the client receives."
    )

    @property
    def expiry_s(self) -> int:
        """Returns the number of seconds for which the broker keeps the session after a lost connection;
        NEVER_S means for ever.
        """
        if self.session_expiry is None:
            return 0 if self.clean_session else NEVER_S
        return min(self.session_expiry // 10**9, NEVER_S)

    @property
    def outlives_connections(self) -> bool:
        """Returns whether the broker keeps the session for ever after a lost connection."""
        return self.expiry_s == NEVER_S


class Carried(Protocol):
    """Software whose MQTT may be inside TLS, WebSocket, or both."""

    @property
    def tls(self) -> object | None: ...
    @property
    def websocket(self) -> object | None: ...


def spoken(software: Carried) -> str:
    """Returns the reducer's name of the traffic on a port of MQTT: "mqtt", "tls" if it is encrypted, or
    "http", as which a WebSocket begins.
    """
    if software.tls is not None:
        return "tls"
    return "http" if software.websocket else PROTOCOL


class Client(Base):
    """An MQTT client."""

    mqtt: MqttOptions = Field(description="The client.")
