"""Client for the control socket of a running lab: JSON lines (docs/contracts/json-lines.md)."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Message = dict[str, Any]


class ControlError(Exception):
    """The lab refused a request or does not answer; the text gives the reason."""


class Control:
    """One connection. Requests may overlap: `send` returns the id of the answers in `messages`."""

    def __init__(self, connection: socket.socket, peer: str = "the lab") -> None:
        self._socket = connection
        self._peer = peer
        self._buffer = bytearray()
        self._last_id = 0

    @classmethod
    def connect(cls, path: Path, *, timeout_s: float = 10.0) -> Control:
        """Connect to `path`; ControlError if no process listens there."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            raise ControlError(f"{path}: no lab process answers ({error.strerror or error})") from error
        connection.settimeout(None)
        return cls(connection, str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection without waiting for commands on nodes."""
        self._socket.close()

    def fileno(self) -> int:
        """The file descriptor, for `selectors`."""
        return self._socket.fileno()

    def send(self, op: str, **fields: Any) -> int:
        """Send one request; returns its id."""
        self._last_id += 1
        line = json.dumps({"id": self._last_id, "op": op, **fields}) + "\n"
        try:
            self._socket.sendall(line.encode())
        except OSError as error:
            raise ControlError(f"{self._peer}: {op}: the lab process is gone ({error.strerror})") from error
        return self._last_id

    def available(self) -> list[Message]:
        """Read once (blocks until something arrives) and return all complete messages."""
        try:
            chunk = self._socket.recv(65536)
        except OSError as error:
            raise ControlError(f"{self._peer}: the lab process is gone ({error.strerror})") from error
        if not chunk:
            raise ControlError(f"{self._peer}: the lab process closed the connection")
        self._buffer += chunk
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        return [json.loads(line) for line in lines if line.strip()]

    def messages(self) -> Iterator[Message]:
        """All messages; ControlError when the lab closes the connection."""
        while True:
            yield from self.available()

    def call(self, op: str, *, on_event: Callable[[Message], None] | None = None, **fields: Any) -> Message:
        """Send a request and wait for its answer; ControlError with the lab's text if it is refused."""
        sent = self.send(op, **fields)
        for message in self.messages():
            if message.get("id") != sent:
                continue  # an event for all clients
            if "event" in message:
                if on_event:
                    on_event(message)
                continue
            if not message.get("ok"):
                raise ControlError(str(message.get("error", f"{op}: refused without a reason")))
            return message
        raise AssertionError("unreachable: messages() never ends by itself")


def encode(data: bytes) -> str:
    """Binary data in the form that messages carry."""
    return base64.b64encode(data).decode()


def decode(message: Message) -> bytes:
    """The bytes of a message's `data`."""
    return base64.b64decode(message["data"])


def payload(answer: Message) -> Message:
    """An answer without its envelope."""
    return {key: value for key, value in answer.items() if key not in ("id", "ok")}
