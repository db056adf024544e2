"""Defines the keys of an AMQP client in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.dscp import Dscp
from ...language.scalars import Base, Positive, Span, text
from ..brokers import BrokerNode, BrokerPort, ClientPcp, PayloadSize, Queue, Reconnect
from ..encodings import Encoded
from ..sending import Sending

PROTOCOL = "amqp"  # how brokers and the reducer call AMQP 0-9-1
ExchangeType = Literal["topic", "direct", "fanout"]


class AmqpPublish(Sending, Encoded):
    """Messages of an AMQP client, open loop: by the clock, whether or not the last message has arrived."""

    exchange: str = Field(
        description='Where to, declared at the start. "": the default exchange, to the queue called `key`.'
    )
    key: str = Field(
        "",
        description="May hold {node}, {group}, {index}, {next} and {previous} (both wrap around).",
    )
    type: ExchangeType = Field("topic", description="Of the exchange: how keys choose its queues.")
    durable: bool = Field(True, description="The exchange outlives a restart of the broker.")
    persistent: bool = Field(
        True, description="The messages do, in durable queues: the broker writes them to its disk."
    )
    confirms: bool = Field(
        True,
        description="The broker confirms each message; what it has not when the connection is lost is sent "
        "again.",
    )
    payload: Literal["bytes", "metering-xml"] = Field("bytes", description="What the payload is made of.")
    payload_size: PayloadSize = text("717 B")
    inflight: Positive = Field(1000, le=2**31 - 1, description="Window of messages that are not confirmed.")
    queue: Queue = 1000


class AmqpConsume(Base):
    """The queue of an AMQP client, and the keys that bind it to an exchange."""

    exchange: str = Field("", description='Where from; declared at the start. "": only by the queue\'s name.')
    keys: list[str] = Field(
        default_factory=list,
        description="Binding keys, with the placeholders of `publish.key`; of a topic exchange with * (a "
        "word) and # (any number of words).",
    )
    type: ExchangeType = Field("topic", description="Of the exchange.")
    queue: str = Field(
        "",
        description="With the placeholders of `publish.key`. It outlives the connection, and those that name "
        'the same one share its messages. "": one of its own, gone with the connection.',
    )
    durable: bool = Field(True, description="Exchange and named queue outlive a restart of the broker.")
    prefetch: Positive = Field(
        100, le=65535, description="Messages that may be on their way without acknowledgement."
    )
    acknowledge: bool = Field(
        True,
        description="It acknowledges each message; what it has not when its connection is lost comes again.",
    )


class AmqpOptions(Base):
    """One client of AMQP 0-9-1, spoken by the node's agent, every message accounted for."""

    broker: BrokerNode
    port: BrokerPort = None
    vhost: str = Field("/", min_length=1, description="Virtual host.")
    user: str = Field("guest", description="Login, by PLAIN.")
    password: str = Field("guest", description="Its password.")
    heartbeat: Span = Field(
        text("60 s"),
        description="Whole seconds: it speaks each half of them, and two of them without a word end the "
        "connection; 0 s: none.",
    )
    reconnect: Reconnect = text("1 s")
    dscp: Dscp | None = Field(None, description="DSCP of the packets that it sends.")
    pcp: ClientPcp = None
    publish: AmqpPublish | None = Field(None, description="What it sends.")
    consume: AmqpConsume | None = Field(None, description="What it receives.")


class Amqp(Base):
    """An AMQP client."""

    amqp: AmqpOptions = Field(description="The client.")
