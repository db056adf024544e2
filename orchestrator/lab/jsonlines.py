"""Encodes and decodes JSON objects, one per line, for Unix sockets and UML's serial line."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]
MOST_BYTES = 64 << 20  # longest line; the request that creates thousands of nodes has some MiB
# Exceptions that code raises when a message does not have the expected form.
STRANGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class LineBuffer:
    """Takes bytes and returns complete messages."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._waiting_bytes = 0

    def feed(self, chunk: bytes) -> list[Message]:
        """Returns the messages that `chunk` completes; raises ValueError if a line is no JSON object or
        exceeds MOST_BYTES.
        """
        if b"\n" not in chunk:
            self._parts.append(chunk)
            self._waiting_bytes += len(chunk)
            if self._waiting_bytes > MOST_BYTES:
                self._parts, self._waiting_bytes = [], 0
                raise ValueError(f"a line longer than {MOST_BYTES >> 20} MiB")
            return []
        *lines, rest = b"".join([*self._parts, chunk]).split(b"\n")
        self._parts, self._waiting_bytes = ([rest] if rest else []), len(rest)
        return [_message(line) for line in lines if line.strip()]


def _message(line: bytes) -> Message:
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError(f"nested too deeply: {line[:80]!r}") from None
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {line[:80]!r}")
    return value


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
