"""Defines bridges of mosquitto: connections by which a broker publishes its messages at another broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from ..language.scalars import Base, Name, Port, Span, text
from .brokers import Forward, check_broker
from .checking import Checks, Here
from .mqtt.file import PROTOCOL
from .mqtt.topics import filter_fault
from .scene import Scene

_EXAMPLE = "{mosquitto: {broker: mosquitto}}"


class BridgedTopic(Base):
    """Messages that a bridge forwards."""

    topic: str = Field(min_length=1, description="Topic filter.")
    qos: Annotated[int, Field(ge=0, le=2)] = Field(1, description="Highest quality of service on the bridge.")


class Bridge(Base):
    """A bridge to another broker, where messages arrive under their own topics."""

    to: Name = Field(description="Node of the other broker.")
    port: Port | None = Field(None, description="Its port; by default that of the broker software there.")
    topics: list[BridgedTopic] = Field(min_length=1, description="Messages that this broker forwards.")
    user: str | None = Field(None, min_length=1, description="User name at the other broker.")
    password: str | None = Field(None, description="Its password.")
    retry: Span = Field(text("1 s"), description="Wait before a new attempt to connect, whole seconds.")


def forwards(bridges: Sequence[Bridge]) -> tuple[Forward, ...]:
    """Returns the messages that a broker with these bridges forwards."""
    return tuple(
        Forward(bridge.to, bridge.port, one.topic, one.qos) for bridge in bridges for one in bridge.topics
    )


def check_bridges(report: Checks, here: Here, bridges: Sequence[Bridge]) -> None:
    """Reports bridges to a broker that is unknown, cannot be reached, is the broker itself, uses TLS or
    WebSocket, or does not admit the bridge's user. Also reports topics that are not filters, and waits that
    are not whole seconds.
    """
    for index, bridge in enumerate(bridges):
        path = (*here.path, "bridges", index)
        if bridge.to in here.nodes:
            report.add((*path, "to"), bridge.to, "is this broker's own node", "name another broker's node")
            continue
        service = check_broker(report, here, (*path, "to"), bridge.to, bridge.port, PROTOCOL, _EXAMPLE)
        if service is not None and (service.tls is not None or service.websocket):
            rule = "speaks TLS or WebSocket only, which a bridge here does not have"
            report.add((*path, "to"), bridge.to, rule, "write the bridge into `config`")
        if service is not None and service.users is not None and bridge.user not in service.users:
            rule = f"the broker of {bridge.to} admits only its `users`"
            report.add((*path, "user"), bridge.user, rule, "write one of them, and its `password`")
        if bridge.retry % 10**9 or bridge.retry == 0:
            report.add((*path, "retry"), None, "must be whole seconds, at least 1", 'write for example "1 s"')
        for number, one in enumerate(bridge.topics):
            if (wrong := filter_fault(one.topic)) or not one.topic.isprintable() or " " in one.topic:
                rule = wrong or "is not one word of a configuration"
                report.add((*path, "topics", number, "topic"), one.topic, rule, "write for example meter/#")
        for key in ("user", "password"):
            if (value := getattr(bridge, key)) is not None and not value.isprintable():
                report.add((*path, key), value, "is not one line", "write a text without control characters")


def lines(scene: Scene, node: str, bridges: Sequence[Bridge], port_of: dict[str, int]) -> Iterator[str]:
    """Yields the configuration of the bridges of a broker; `port_of` has the port of each bridge's broker.

    The session of a bridge outlives its connections, so waiting messages are kept.
    """
    for index, bridge in enumerate(bridges, start=1):
        seconds = bridge.retry // 10**9
        yield f"connection {node}-{index}"
        yield f"address {scene.address(bridge.to, node)}:{bridge.port or port_of[bridge.to]}"
        yield f"remote_clientid {node}-bridge-{index}"
        yield from (f"topic {one.topic} out {one.qos}" for one in bridge.topics)
        if bridge.user is not None:
            yield f"remote_username {bridge.user}"
        if bridge.password is not None:
            yield f"remote_password {bridge.password}"
        yield f"restart_timeout {seconds}"
        yield from ("cleansession false", "notifications false", "bridge_attempt_unsubscribe false")
