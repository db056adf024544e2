"""Operations and plain values as lines to a part, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Operation

SILENCE_S = 60.0  # without a word from the other side, it counts as gone; a network may be away for some
BEAT_S = 5.0  # how often each says one


def fields(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Dataclasses as `codec.build` reads them."""
    return [dataclasses.asdict(value) for value in values]


def told(request: Operation[Any]) -> Message:
    """An operation by its class, since several have one name."""
    names = [field.name for field in dataclasses.fields(request) if field.init]
    return {"kind": type(request).__name__, "fields": {name: getattr(request, name) for name in names}}


def understood(message: Message) -> Operation[Any]:
    """The operation that `told` wrote."""
    kinds = {kind.__name__: kind for kind in Operation.__subclasses__()}
    found: Operation[Any] = kinds[message["kind"]](**message["fields"])
    return found
