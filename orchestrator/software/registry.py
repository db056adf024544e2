"""The kinds of software, by name. A new kind is a room and a line here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Program
from . import bulk, mosquitto, tcp, udp
from .command import room as command
from .frames import room as frames
from .kind import Kind
from .mqtt import room as mqtt

KINDS: dict[str, Kind] = {
    "mosquitto": mosquitto.KIND,
    "mqtt": mqtt.KIND,
    "command": command.KIND,
    "frames": frames.KIND,
    "udp": udp.KIND,
    "tcp": tcp.KIND,
    "bulk": bulk.KIND,
}


def kind_of(model: Any) -> Kind:
    """The kind of a piece of software as the file's model holds it."""
    return next(kind for kind in KINDS.values() if type(model) is kind.model)


def programs() -> Iterator[Program]:
    """The programs that any kind needs, each once."""
    yield from dict.fromkeys(program for kind in KINDS.values() for program in kind.programs)
