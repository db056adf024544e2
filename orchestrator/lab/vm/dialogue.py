"""Dialogues with many guests at once: each is a generator that yields requests and is sent the answers.

So one of several steps reads from top to bottom, and those of 40 guests go on side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.guest import Guest

Request = tuple[str, dict[str, Any]]
Dialogue = Generator[Request, Message, Any]
OnEnd = Callable[[Any, str | None], None]  # what the generator returned, or the error that ended it


def begin(guest: Guest, dialogue: Dialogue, on_end: OnEnd) -> None:
    """Start a dialogue; nothing waits for it."""
    _step(guest, dialogue, None, on_end)


def _step(guest: Guest, dialogue: Dialogue, answer: Message | None, on_end: OnEnd) -> None:
    try:
        op, fields = next(dialogue) if answer is None else dialogue.send(answer)
        if guest.channel is None:
            raise LabError(f"{op}: it is not running")
        guest.channel.submit(op, lambda message: _step(guest, dialogue, message, on_end), **fields)
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
    loop: Loop, subject: str, patience_ns: int, dialogues: list[tuple[Guest, Dialogue]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Hold all dialogues; (results, errors) by node. TimedOut(subject) after `patience_ns`."""
    results: dict[str, Any] = {}
    errors: dict[str, str] = {}

    def ended(name: str, value: Any, error: str | None) -> None:
        if error is None:
            results[name] = value
        else:
            errors[name] = error

    for guest, dialogue in dialogues:
        begin(guest, dialogue, lambda value, error, n=guest.name: ended(n, value, error))  # type: ignore[misc]
    loop.until(
        loop.clock.now_ns() + patience_ns, subject, lambda: len(results) + len(errors) == len(dialogues)
    )
    return results, errors
