"""Sends requests to a lab's control socket asynchronously: requests may overlap, events go to listeners."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.cli.control import ControlError, Message

# bytes of the longest line: the answer to `inspect` of ten thousand nodes is one line
LINE_BYTES = 64 * 2**20
Listener = Callable[[Message], None]


class Connection:
    """A connection to a lab. `on_event` receives the events for all clients; `closed` is set when the lab
    closes the connection.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_event: Listener
    ) -> None:
        self._reader, self._writer, self._on_event = reader, writer, on_event
        self._last_id = 0
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._listeners: dict[int, Listener] = {}
        self.closed = asyncio.Event()
        self._task = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, path: Path, on_event: Listener = lambda _: None) -> Connection:
        """Connects to the socket `path`; ControlError if no process listens there."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=LINE_BYTES)
        except OSError as error:
            raise ControlError(f"no lab process answers ({error.strerror or error})") from error
        return cls(reader, writer, on_event)

    def send(
        self, op: str, on_event: Listener | None = None, **fields: Any
    ) -> tuple[int, asyncio.Future[Message]]:
        """Sends a request; returns its id and a future of its answer. `on_event` gets the events of this
        request. Raises ControlError if the lab has closed the connection. The future raises ControlError if
        the lab refuses the request.
        """
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.closed.is_set():
            raise ControlError(f"{op}: the lab process is gone")
        self._answers[number] = answer
        if on_event is not None:
            self._listeners[number] = on_event
        self._writer.write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
        return number, answer

    async def call(self, op: str, **fields: Any) -> Message:
        """Sends a request and returns its answer; ControlError with the lab's text if the lab refuses it."""
        return await self.send(op, **fields)[1]

    async def close(self) -> None:
        """Closes the connection; requests without an answer fail."""
        self._task.cancel()
        self._end()

    async def _receive(self) -> None:
        try:
            while line := await self._reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass  # the lab ended within a line, or a line is too long: the connection is closed
        finally:
            self._end()

    def _take(self, message: Message) -> None:
        number = message.get("id")
        if number is None:
            self._on_event(message)
        elif "event" in message:
            if (listener := self._listeners.get(number)) is not None:
                listener(message)
        elif (answer := self._answers.pop(number, None)) is not None:
            self._listeners.pop(number, None)
            if answer.done():
                return  # the client has disconnected
            if message.get("ok"):
                answer.set_result(message)
            else:
                answer.set_exception(ControlError(str(message.get("error", "refused without a reason"))))

    def _end(self) -> None:
        self.closed.set()
        self._writer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ControlError("the lab process is gone"))
                answer.exception()  # marks the error as read, because perhaps no request waits for it
        self._answers.clear()
