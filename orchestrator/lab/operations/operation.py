"""A request of the lab process to an agent: its fields, its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypedDict, TypeVar, cast

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message

Answer = TypeVar("Answer")  # what the operation answers


@dataclass(frozen=True)
class Operation(Generic[Answer]):
    """One request; its public attributes are its fields, in the order in which they are written."""

    op: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """As they are sent: one that may be left out is, where it is None."""
        values = ((f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self))
        return {name: value for name, value, default in values if value is not None or default is not None}

    def read(self, message: Message) -> Answer:
        """Its answer; LabError with the agent's own text where that says no."""
        if not message.get("ok"):
            raise LabError(str(message.get("error", f"{self.op}: refused without a reason")))
        return cast("Answer", message)

    def accept(self, answer: Answer) -> Message:
        """The message that answers it."""
        return {"ok": True, **cast("Mapping[str, Any]", answer)}


class Call(Protocol):
    """A driver's `call`: waits for the answer; LabError where the agent says no."""

    def __call__(self, request: Operation[Answer], *, patience_ns: int = ...) -> Answer: ...


class Done(TypedDict):
    """An answer without fields."""
