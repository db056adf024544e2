"""Framing of JSON objects, one per line, over a descriptor: for both sockets and UML's serial line."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]


class LineBuffer:
    """Bytes in, complete messages out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that `chunk` completes; ValueError where a line is not a JSON object."""
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        *lines, rest = b"".join([*self._parts, chunk]).split(b"\n")
        self._parts = [rest] if rest else []
        return [_message(line) for line in lines if line.strip()]


def _message(line: bytes) -> Message:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {line[:80]!r}")
    return value


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
