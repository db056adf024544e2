"""Encodes operations and dataclasses as JSON messages to a part on another host, and decodes operations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Operation

# environment variable: seconds of silence after which the other side counts as lost
SILENCE = "VNET_SILENCE_S"
USUAL_S, LEAST_S = 60.0, 3.0  # default and least value; a network may be down for some seconds
BEATS = 12  # number of signs of life that each side sends in that time


def silence_s() -> float:
    """Returns the seconds of silence after which the other side counts as lost, from VNET_SILENCE_S or
    USUAL_S; raises LabError for an invalid value.
    """
    text = os.environ.get(SILENCE, "")
    try:
        found = float(text or USUAL_S)
    except ValueError:
        found = 0.0
    if not found >= LEAST_S:
        raise LabError(f'{SILENCE}: "{text}" is no time; write seconds, {LEAST_S:g} or more, or leave it out')
    return found


def fields(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Returns the dataclasses as dictionaries that `codec.build` can read."""
    return [dataclasses.asdict(value) for value in values]


def encode_operation(request: Operation[Any]) -> Message:
    """Encodes an operation with the name of its class, since several classes have the same operation name."""
    names = [field.name for field in dataclasses.fields(request) if field.init]
    return {"kind": type(request).__name__, "fields": {name: getattr(request, name) for name in names}}


def decode_operation(message: Message) -> Operation[Any]:
    """Returns the operation that `encode_operation` encoded."""
    kinds = {kind.__name__: kind for kind in Operation.__subclasses__()}
    found: Operation[Any] = kinds[message["kind"]](**message["fields"])
    return found
