"""Defines a request of the lab process to an agent: its fields, how it is sent, and how its answer
is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypedDict, TypeVar, cast

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message

Answer = TypeVar("Answer")  # the type of the operation's answer


@dataclass(frozen=True)
class Operation(Generic[Answer]):
    """One request to an agent. Its dataclass fields are sent in their order, except optional ones that are
    None; the type parameter is the answer's type.
    """

    op: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """Returns the fields as they are sent, without those that are None by default and None now."""
        values = ((f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self))
        return {name: value for name, value, default in values if value is not None or default is not None}

    def read(self, message: Message) -> Answer:
        """Returns the agent's message as the answer, without a check of its fields; raises LabError with the
        agent's error text if `ok` is missing or false.
        """
        if not message.get("ok"):
            raise LabError(str(message.get("error", f"{self.op}: refused without a reason")))
        return cast("Answer", message)

    def accept(self, answer: Answer) -> Message:
        """Returns the message that an agent sends with this answer."""
        return {"ok": True, **cast("Mapping[str, Any]", answer)}


class Call(Protocol):
    """The method `call` of a driver: sends a request and returns the answer; raises LabError if the agent
    refuses.
    """

    def __call__(self, request: Operation[Answer], *, patience_ns: int = ...) -> Answer: ...


class Done(TypedDict):
    """An answer without fields."""
