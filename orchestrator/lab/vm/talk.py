"""Conversations with many guests at once: each is a generator that yields requests and is sent the answers.

So a dialogue of several steps reads from top to bottom, and those of 40 guests go on side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.guest import Guest

Asking = tuple[str, dict[str, Any]]
Talk = Generator[Asking, Message, Any]
OnEnd = Callable[[Any, str | None], None]  # what the generator returned, or the error that ended it


def begin(guest: Guest, talk: Talk, on_end: OnEnd) -> None:
    """Start a conversation; nothing waits for it."""
    _step(guest, talk, None, on_end)


def _step(guest: Guest, talk: Talk, answer: Message | None, on_end: OnEnd) -> None:
    try:
        op, fields = next(talk) if answer is None else talk.send(answer)
        if guest.channel is None:
            raise LabError(f"{op}: it is not running")
        guest.channel.submit(op, lambda message: _step(guest, talk, message, on_end), **fields)
    except StopIteration as end:
        on_end(end.value, None)
    except LabError as error:
        on_end(None, str(error))


def insist(answer: Message) -> Message:
    """The answer, LabError with the agent's text where it says no."""
    if not answer.get("ok"):
        raise LabError(str(answer.get("error", "refused without a reason")))
    return answer


def together(
    loop: Loop, subject: str, patience_ns: int, talks: list[tuple[Guest, Talk]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Hold all conversations; (results, errors) by node. TimedOut(subject) after `patience_ns`."""
    results: dict[str, Any] = {}
    errors: dict[str, str] = {}

    def ended(name: str, value: Any, error: str | None) -> None:
        if error is None:
            results[name] = value
        else:
            errors[name] = error

    for guest, talk in talks:
        begin(guest, talk, lambda value, error, n=guest.name: ended(n, value, error))  # type: ignore[misc]
    loop.until(loop.clock.now_ns() + patience_ns, subject, lambda: len(results) + len(errors) == len(talks))
    return results, errors
