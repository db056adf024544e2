"""Runs dialogues with many agents in parallel: each is a generator that yields requests and
receives answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.jsonlines import STRANGE, Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Answer, Operation

T = TypeVar("T")  # the type of a dialogue's result
Dialogue = Generator[Operation[Any], Message, T]
OnEnd = Callable[[Any, str | None], None]  # called with the generator's result, or the error that ended it


class Channel(Protocol):
    """The interface of a channel that sends requests to an agent."""

    def submit(
        self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None
    ) -> int: ...


class Party(Protocol):
    """The other end of a dialogue: a guest, or the part of a lab on another host."""

    @property
    def name(self) -> str: ...
    @property
    def channel(self) -> Channel | None: ...


def begin(guest: Party, dialogue: Dialogue[Any], on_end: OnEnd) -> None:
    """Starts a dialogue without waiting for its end; `on_end` receives its result, or None and an error text.
    An answer that no agent would send is an error.
    """
    _step(guest, dialogue, None, on_end)


def _step(guest: Party, dialogue: Dialogue[Any], answer: Message | None, on_end: OnEnd) -> None:
    try:
        request = next(dialogue) if answer is None else dialogue.send(answer)
        if guest.channel is None:
            raise LabError(f"{request.op}: it is not running")
        guest.channel.submit(request, lambda message: _step(guest, dialogue, message, on_end))
    except StopIteration as end:
        on_end(end.value, None)
    except LabError as error:
        on_end(None, str(error))
    except STRANGE as error:
        on_end(None, f"its answer is not an agent's: {type(error).__name__}: {str(error)[:200]}")


def ask(request: Operation[Answer]) -> Dialogue[Answer]:
    """Sends one request in a dialogue and returns its answer; raises LabError with the agent's text if the
    agent refuses.
    """
    return request.read((yield request))


def together(
    loop: Loop, subject: str, patience_ns: int, dialogues: Sequence[tuple[Party, Dialogue[T]]],
    *, each: bool = False,
) -> tuple[dict[str, T], dict[str, str]]:  # fmt: skip
    """Runs all dialogues in parallel and waits for them; returns (results, errors) by node.

    Raises TimedOut(subject) after `patience_ns`; with `each`, nodes that did not finish get an error instead.
    """
    results: dict[str, T] = {}
    errors: dict[str, str] = {}

    def ended(name: str, value: Any, error: str | None) -> None:
        if name in errors:
            return  # the answer came after `patience_ns`
        if error is None:
            results[name] = value
        else:
            errors[name] = error

    for guest, dialogue in dialogues:
        begin(guest, dialogue, lambda value, error, n=guest.name: ended(n, value, error))  # type: ignore[misc]
    began = loop.clock.now_ns()
    try:
        loop.until(began + patience_ns, subject, lambda: len(results) + len(errors) == len(dialogues))
    except TimedOut:
        if not each:
            raise
        for name in (guest.name for guest, _ in dialogues if guest.name not in results):
            errors.setdefault(name, f"{subject}: no answer for {patience_ns / SECOND:g} s")
    return dict(results), dict(errors)
