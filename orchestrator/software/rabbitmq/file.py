"""Defines the keys of a RabbitMQ broker in a topology file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ...language.scalars import Duration, Name, Port, text
from ..amqp.file import PROTOCOL as AMQP
from ..brokers import Forward, Service, Serving
from ..mqtt.file import PROTOCOL as MQTT
from ..programs import Restart, StopSignal

Plugin = Literal["mqtt", "amqp1.0"]
# RabbitMQ 3.10, rabbitmq_mqtt: a CONNECT of level 5 is refused, a PUBLISH at QoS 2 gets the PUBACK of QoS 1.
_MQTT_LACKS = {
    "version 5": "RabbitMQ's MQTT plugin speaks 3.1.1 only",
    "QoS 2": "RabbitMQ's MQTT plugin has QoS 0 and 1 only",
    "a shared subscription": "RabbitMQ's MQTT plugin has none",
}


class Rabbit(Serving):
    """RabbitMQ, started in the foreground with a configuration rendered for this node."""

    broker: Literal["rabbitmq"] = Field(description="The broker program.")
    port: Port = Field(5672, description="TCP port of AMQP 0-9-1, on all addresses of its node.")
    plugins: list[Plugin] = Field(
        default_factory=lambda: list[Plugin](["mqtt"]),
        description="mqtt: MQTT 3.1.1 at QoS 0 and 1, on `mqtt_port`. amqp1.0: AMQP 1.0 on `port` too.",
    )
    mqtt_port: Port = Field(1883, description="TCP port of MQTT, on all addresses of its node.")
    mqtt_prefetch: int = Field(
        10, ge=1, le=65535, description="Unacknowledged QoS 1 messages to an MQTT client."
    )
    heartbeat: Duration = Field(
        text("60 s"), description="Heartbeat interval proposed to AMQP clients, whole seconds; 0 s: none."
    )
    channel_max: int = Field(2047, ge=1, le=65535, description="Most channels of an AMQP connection.")
    nodelay: bool = Field(
        True, description="Switch off Nagle's algorithm on the broker's sockets (RabbitMQ's default, too)."
    )
    log_level: Literal["error", "warning", "info", "debug"] = Field(
        "warning", description="Level of the broker's log; info: also each connection and its end."
    )
    cluster: list[Name] = Field(
        default_factory=list,
        description="Nodes of the cluster's brokers, this one too; the same list at each of them.",
    )
    options: dict[str, str | int | bool] = Field(
        default_factory=dict,
        description="Further settings, APPLICATION.KEY: value; a text is taken as an Erlang term: "
        "`rabbit.vm_memory_high_watermark: '{absolute, 50000000}'`.",
    )
    ready_within: Duration = Field(
        text("120 s"), description="Deadline until the broker answers a publish on each of its ports."
    )
    restart: Restart = "never"
    stop_signal: StopSignal = "SIGTERM"

    def services(self) -> Mapping[str, Service]:
        mqtt = {MQTT: Service(self.mqtt_port, _MQTT_LACKS)} if "mqtt" in self.plugins else {}
        return {AMQP: Service(self.port), **mqtt}

    def forwards(self, node: str) -> tuple[Forward, ...]:
        return tuple(Forward(other, None, "#", 1) for other in self.cluster if other != node)
