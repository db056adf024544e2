"""The kinds of software, by name. A new kind is a room and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import Program
from . import bulk, goose, mosquitto, sampled_values, synchrophasor, tcp, udp
from .amqp import room as amqp
from .command import room as command
from .frames import room as frames
from .frr import room as frr
from .ftp import room as ftp
from .gateway import room as gateway
from .kind import Kind
from .middleware import room as middleware
from .mqtt import room as mqtt
from .rabbitmq import room as rabbitmq
from .zeromq import room as zeromq

KINDS: dict[str, Kind] = {
    "mosquitto": mosquitto.KIND,
    "rabbitmq": rabbitmq.KIND,
    "mqtt": mqtt.KIND,
    "command": command.KIND,
    "frames": frames.KIND,
    "udp": udp.KIND,
    "tcp": tcp.KIND,
    "bulk": bulk.KIND,
    "zeromq": zeromq.KIND,
    "frr": frr.KIND,
    "amqp": amqp.KIND,
    "sampled-values": sampled_values.KIND,
    "goose": goose.KIND,
    "synchrophasor": synchrophasor.KIND,
    "middleware": middleware.KIND,
    "ftp": ftp.KIND,
    "gateway": gateway.KIND,
    "reservations": gateway.BROKER,
}


def kind_of(model: Any) -> Kind:
    """The kind of a piece of software as the file's model holds it."""
    return next(kind for kind in KINDS.values() if type(model) is kind.model)


def endpoints(node: str, software: Mapping[str, Any]) -> dict[str, str]:
    """What records call a node's software, by its own name: as the node, where only one of it is recorded."""
    recorded = [name for name, model in software.items() if kind_of(model).endpoint(model)]
    return {name: node if len(recorded) == 1 else f"{node}-{name}" for name in recorded}


def programs() -> Iterator[Program]:
    """The programs that any kind needs, each once."""
    yield from dict.fromkeys(program for kind in KINDS.values() for program in kind.programs)
