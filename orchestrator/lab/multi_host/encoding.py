"""Encodes operations and dataclasses as JSON messages to a part on another host, and decodes them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Operation

SILENCE = "VNET_SILENCE_S"  # environment variable: after this silence the other side counts as lost
USUAL_S, LEAST_S = 60.0, 3.0  # a network may be down for some seconds
BEATS = 12  # beats that each side sends in that time


def silence_s() -> float:
    """The silence that the user allows, in seconds; LabError if the variable holds no duration."""
    text = os.environ.get(SILENCE, "")
    try:
        found = float(text or USUAL_S)
    except ValueError:
        found = 0.0
    if not found >= LEAST_S:
        raise LabError(f'{SILENCE}: "{text}" is no time; write seconds, {LEAST_S:g} or more, or leave it out')
    return found


def fields(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Dataclasses as `codec.build` reads them."""
    return [dataclasses.asdict(value) for value in values]


def encode_operation(request: Operation[Any]) -> Message:
    """An operation by its class, since several have one name."""
    names = [field.name for field in dataclasses.fields(request) if field.init]
    return {"kind": type(request).__name__, "fields": {name: getattr(request, name) for name in names}}


def decode_operation(message: Message) -> Operation[Any]:
    """The operation that `encode_operation` wrote."""
    kinds = {kind.__name__: kind for kind in Operation.__subclasses__()}
    found: Operation[Any] = kinds[message["kind"]](**message["fields"])
    return found
