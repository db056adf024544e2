"""Defines the keys of an MQTT client in a topology file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from ...language.dscp import Dscp
from ...language.scalars import Base, Positive, Span, text
from ..brokers import BrokerNode, BrokerPort, ClientPcp, PayloadSize, Queue, Reconnect
from ..encodings import Encoded
from ..sending import Sending

PROTOCOL = "mqtt"  # how brokers and the reducer call it
Qos = Annotated[int, Field(ge=0, le=2)]


class Publish(Sending, Encoded):
    """Messages of an MQTT client, open loop: by the clock, whether or not the last message has arrived."""

    topic: str = Field(
        min_length=1,
        description="May hold {node}, {group}, {index}, {next} and {previous} (both wrap around).",
    )
    qos: Qos = Field(0, description="0: at most once, 1: at least once, 2: exactly once.")
    payload: Literal["metering-xml"] = Field("metering-xml", description="What the payload is made of.")
    payload_size: PayloadSize = text("717 B")
    inflight: Positive = Field(20, le=65535, description="Window of unacknowledged QoS 1 and 2 messages.")
    queue: Queue = 1000


class Subscription(Base):
    """One subscription of an MQTT client."""

    topic: str = Field(
        min_length=1, description="Topic filter; the placeholders of `publish.topic`, and + and #."
    )
    qos: Qos = Field(0, description="Highest quality of service at which messages are delivered.")


def _version(value: Any) -> Any:
    return str(value) if value == 5 and not isinstance(value, bool) else value


_VERSIONS = WithJsonSchema({"title": "version", "enum": ["3.1.1", "5", 5]})
Version = Annotated[Literal["3.1.1", "5"], BeforeValidator(_version), _VERSIONS]


class MqttOptions(Base):
    """One MQTT client, spoken by the node's agent, every message accounted for."""

    broker: BrokerNode
    port: BrokerPort = None
    version: Version = Field("3.1.1", description="Of MQTT.")
    keepalive: Span = Field(text("60 s"), description="MQTT keep alive interval, whole seconds.")
    clean_session: bool = Field(True, description="Start without the state of an earlier connection.")
    reconnect: Reconnect = text("1 s")
    dscp: Dscp | None = Field(
        None,
        description="DSCP of the packets that it sends; those of its broker have it too where that has "
        "`reflect_dscp: true`.",
    )
    pcp: ClientPcp = None
    publish: Publish | None = Field(None, description="What it sends.")
    subscribe: list[Subscription] = Field(default_factory=list, description="What it receives.")


class Client(Base):
    """An MQTT client."""

    mqtt: MqttOptions = Field(description="The client.")
