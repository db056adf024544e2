"""Represents texts that may be partly unknown, and the answers of commands."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass

UNKNOWN = "\ufdd0"  # replaces unknown output in a text; a noncharacter, so that no text contains it


@dataclass(frozen=True)
class Answer:
    """A command's exit status and output; an unknown status is None, an unknown output has UNKNOWN in it."""

    status: int | None = 0
    output: str = ""


# Applies a command to the lab: its words, the script's line, its standard input. None: the result is unknown.
Act = Callable[[Sequence[str], int, str], Answer | None]
NOT_KNOWN = Answer(None, UNKNOWN)


def known(text: str) -> bool:
    return UNKNOWN not in text


def matches(text: str, pattern: str) -> bool | None:
    """Returns whether a text matches a shell pattern; None if either is unknown, but True for "*"."""
    if pattern == "*":
        return True
    return fnmatch.fnmatchcase(text, pattern) if known(text) and known(pattern) else None


def status_of(holds: bool | None) -> Answer:
    """Returns the answer of a shell test, which prints nothing: status 0 if it holds, 1 if not, None if
    unknown.
    """
    return Answer(None if holds is None else int(not holds))
