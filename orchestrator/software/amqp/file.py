"""Defines the keys of an AMQP client in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.dscp import Dscp
from ...language.scalars import Base, Positive, Span, text
from ..brokers import BrokerNode, BrokerPort, ClientPcp, PayloadSize, Queue, Reconnect
from ..encodings import Encoded
from ..sending import Sending

PROTOCOL = "amqp"  # name of AMQP 0-9-1 in brokers and the reducer
ExchangeType = Literal["topic", "direct", "fanout"]


class AmqpPublish(Sending, Encoded):
    """Messages of an AMQP client, open loop: by the clock, whether or not the last message has arrived."""

    exchange: str = Field(
        description=(
            'Exchange, declared at the start; "" is the default exchange, which leads to the queue named '
            "`key`."
        )
    )
    key: str = Field(
        "",
        description="May contain {node}, {group}, {index}, {next} and {previous} (both wrap around).",
    )
    type: ExchangeType = Field(
        "topic", description="Type of the exchange: how routing keys choose its queues."
    )
    durable: bool = Field(True, description="The exchange outlives a restart of the broker.")
    persistent: bool = Field(
        True, description="Messages in durable queues outlive a restart: the broker writes them to its disk."
    )
    confirms: bool = Field(
        True,
        description=(
            "The broker confirms each message; messages not confirmed when the connection is lost are sent "
            "again."
        ),
    )
    payload: Literal["bytes", "metering-xml"] = Field("bytes", description="Content of the payload.")
    payload_size: PayloadSize = text("717 B")
    inflight: Positive = Field(1000, le=2**31 - 1, description="Window of messages that are not confirmed.")
    queue: Queue = 1000


class AmqpConsume(Base):
    """The queue of an AMQP client, and the keys that bind it to an exchange."""

    exchange: str = Field(
        "", description='Exchange, declared at the start; "": messages come only by the queue\'s name.'
    )
    keys: list[str] = Field(
        default_factory=list,
        description="Binding keys, with the placeholders of `publish.key`; of a topic exchange with * (a "
        "word) and # (any number of words).",
    )
    type: ExchangeType = Field("topic", description="Type of the exchange.")
    queue: str = Field(
        "",
        description=(
            "Name of the queue, with the placeholders of `publish.key`. It outlives the connection, and "
            'clients that name the same queue share its messages. "": a queue of this client alone, '
            "deleted with the connection."
        ),
    )
    durable: bool = Field(True, description="Exchange and named queue outlive a restart of the broker.")
    prefetch: Positive = Field(100, le=65535, description="Limit on messages that are not acknowledged.")
    acknowledge: bool = Field(
        True,
        description=(
            "The client acknowledges each message; the broker sends messages not acknowledged at a lost "
            "connection again."
        ),
    )


class AmqpOptions(Base):
    """One client of AMQP 0-9-1, spoken by the node's agent, every message accounted for."""

    broker: BrokerNode
    port: BrokerPort = None
    vhost: str = Field("/", min_length=1, description="Virtual host.")
    user: str = Field("guest", description="Login, by PLAIN.")
    password: str = Field("guest", description="Password of the login.")
    heartbeat: Span = Field(
        text("60 s"),
        description=(
            "Heartbeat interval, whole seconds; the client sends one every half interval, and two "
            "intervals of silence end the connection; 0 s: none."
        ),
    )
    reconnect: Reconnect = text("1 s")
    dscp: Dscp | None = Field(None, description="DSCP of the client's packets.")
    pcp: ClientPcp = None
    publish: AmqpPublish | None = Field(None, description="Messages that the client sends.")
    consume: AmqpConsume | None = Field(None, description="Messages that the client receives.")


class Amqp(Base):
    """An AMQP client."""

    amqp: AmqpOptions = Field(description="The client.")
