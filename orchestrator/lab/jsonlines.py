"""Encodes and decodes JSON objects, one per line, for Unix sockets and UML's serial line."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]
MOST_BYTES = 64 << 20  # bytes of the longest line; the request that creates thousands of nodes has some MiB
# The exceptions that code raises when it uses a message that does not have the expected form.
STRANGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class LineError(ValueError):
    """Raised for a line that is not a message; `before` holds the messages before it in the same chunk."""

    def __init__(self, text: str, before: list[Message]) -> None:
        super().__init__(text)
        self.before = before


class LineBuffer:
    """Collects chunks of bytes of any length and returns the messages that are complete."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # parts of the incomplete line
        self._waiting_bytes = 0

    def feed(self, chunk: bytes) -> list[Message]:
        """Returns the messages that `chunk` completes. Raises LineError at the first line that is no JSON
        object or has more than MOST_BYTES bytes, and drops this line and the rest of the chunk.
        """
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._waiting_bytes += len(first)
        if not others and self._waiting_bytes <= MOST_BYTES:
            return []
        *lines, rest = [b"".join(self._parts), *(others or [b""])]
        self._parts, self._waiting_bytes = [], 0
        found: list[Message] = []
        for line in lines:
            try:
                found += _messages(line)
            except ValueError as error:
                raise LineError(str(error), found) from error
        self._parts, self._waiting_bytes = [rest], len(rest)
        return found


def _messages(line: bytes) -> list[Message]:
    """Returns the message of a line as a list, which is empty for a blank line; raises ValueError in the
    cases that `LineBuffer.feed` names.
    """
    if len(line) > MOST_BYTES:
        raise ValueError(f"a line longer than {MOST_BYTES >> 20} MiB")
    if not line.strip():
        return []
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError(f"nested too deeply: {line[:80]!r}") from None
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {line[:80]!r}")
    return [value]


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
