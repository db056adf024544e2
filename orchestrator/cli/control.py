"""Sends requests to the control socket of a running lab, as JSON lines (docs/contracts/json-lines.md)."""

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
    """Raised if the lab refuses a request or does not answer; the text gives the reason."""


class Control:
    """A connection to a lab, to be used in a `with` statement. Requests may overlap: `send` returns an id,
    and the answers in `messages` have the same id.
    """

    def __init__(self, connection: socket.socket, peer: str = "the lab") -> None:
        self._socket = connection
        self._peer = peer
        self._buffer = bytearray()
        self._last_id = 0

    @classmethod
    def connect(cls, path: Path, *, timeout_s: float = 10.0) -> Control:
        """Connects to the socket `path`; ControlError if no process accepts the connection within
        `timeout_s`. Requests have no time limit.
        """
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
        """Closes the connection; does not wait for commands that still run on nodes."""
        self._socket.close()

    def fileno(self) -> int:
        """Returns the file descriptor of the connection, for `selectors`."""
        return self._socket.fileno()

    def send(self, op: str, **fields: Any) -> int:
        """Sends a request for the operation `op`; returns its id.

        ControlError if the lab process has ended.
        """
        self._last_id += 1
        line = json.dumps({"id": self._last_id, "op": op, **fields}) + "\n"
        try:
            self._socket.sendall(line.encode())
        except OSError as error:
            raise ControlError(f"{self._peer}: {op}: the lab process is gone ({error.strerror})") from error
        return self._last_id

    def available(self) -> list[Message]:
        """Waits for data, reads once, and returns the messages that are complete; possibly none.

        Raises ControlError if the lab has closed the connection.
        """
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
        """Yields all messages as they arrive; raises ControlError when the lab closes the connection."""
        while True:
            yield from self.available()

    def call(self, op: str, *, on_event: Callable[[Message], None] | None = None, **fields: Any) -> Message:
        """Sends a request and waits for its answer; passes events of this request to `on_event`.

        Raises ControlError with the lab's text if the request is refused.
        """
        sent = self.send(op, **fields)
        for message in self.messages():
            if message.get("id") != sent:
                continue  # the message is an event for all clients
            if "event" in message:
                if on_event:
                    on_event(message)
                continue
            if not message.get("ok"):
                raise ControlError(str(message.get("error", f"{op}: refused without a reason")))
            return message
        raise AssertionError("unreachable: messages() never ends by itself")


def encode(data: bytes) -> str:
    """Returns binary data as base64 text, as messages carry it."""
    return base64.b64encode(data).decode()


def decode(message: Message) -> bytes:
    """Returns the bytes of a message's base64 field `data`."""
    return base64.b64decode(message["data"])


def payload(answer: Message) -> Message:
    """Returns the fields of an answer without `id` and `ok`."""
    return {key: value for key, value in answer.items() if key not in ("id", "ok")}
