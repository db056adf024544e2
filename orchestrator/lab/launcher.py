"""Client of the launcher's socket (docs/contracts.md): sends requests, and passes on answers and events."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import LineBuffer, LineError, Message, encode
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Answer, Operation

OnMessage = Callable[[Message], None]
READ_BYTES = 1 << 18


@dataclass
class Request:
    op: str
    on_answer: OnMessage
    on_event: OnMessage | None


class Launcher:
    """One connection to the launcher. `call` waits for the answer while the loop serves other descriptors;
    `submit` does not wait.

    on_event: function for events that belong to no request. on_lost: function that is called when the
    connection ends.
    """

    def __init__(self, loop: Loop, path: Path, on_event: OnMessage, on_lost: Callable[[str], None]) -> None:
        self._loop = loop
        self._on_event = on_event
        self._on_lost = on_lost
        self._buffer = LineBuffer()
        self._ids = itertools.count(1)
        self._requests: dict[int, Request] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        self.lost = False
        loop.watch(self._socket.fileno(), self._readable)

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        """Sends a request; `on_answer` gets the answer (ok or not), `on_event` the request's events. Returns
        the request's id, which later requests name as `target`. Raises LabError if the launcher has ended.
        """
        number, op = next(self._ids), request.op
        if self.lost:
            raise LabError(f"launcher: {op}: it has ended")
        self._requests[number] = Request(op, on_answer, on_event)
        try:
            self._socket.sendall(encode({"id": number, "op": op, **request.fields()}))
        except OSError as error:
            del self._requests[number]
            self._lose(error.strerror or str(error))
            raise LabError(f"launcher: {op}: it has ended ({error.strerror})") from error
        return number

    def call(self, request: Operation[Answer], *, patience_ns: int = 30 * SECOND) -> Answer:
        """Sends a request and returns its answer; raises LabError with the launcher's text if the launcher
        refuses the request, TimedOut after `patience_ns`.
        """
        return self.begin(request)(patience_ns)

    def begin(self, request: Operation[Answer]) -> Callable[[int], Answer]:
        """Sends a request; returns a function that waits up to `patience_ns` and returns the answer, as
        `call` does.
        """
        answers: list[Message] = []
        self.submit(request, answers.append)

        def answer(patience_ns: int) -> Answer:
            deadline = self._loop.clock.now_ns() + patience_ns
            self._loop.until(deadline, f"the launcher's answer to {request.op}", lambda: bool(answers))
            return request.read(answers[0])

        return answer

    def expect_end(self) -> None:
        """Makes the end of the connection count as no error from now on."""
        self._on_lost = lambda _: None

    def close(self) -> None:
        if not self.lost:
            self.lost = True
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()

    def _readable(self) -> None:
        try:
            chunk = self._socket.recv(READ_BYTES)
        except OSError as error:
            self._lose(error.strerror or str(error))
            return
        if not chunk:
            self._lose("its connection closed")
            return
        wrong = ""
        try:
            messages = self._buffer.feed(chunk)
        except LineError as error:
            messages, wrong = error.before, f"it sent an invalid message: {error}"
        for message in messages:
            if not self.lost:
                self._take(message)
        if wrong and not self.lost:
            self._lose(wrong)

    def _take(self, message: Message) -> None:
        number = message.get("id")
        if number is None:
            self._on_event(message)
        elif (request := self._requests.get(number)) is None:
            return  # the answer to a call that is no longer waited for
        elif "event" in message:
            if request.on_event:
                request.on_event(message)
        else:
            del self._requests[number]
            request.on_answer(message)

    def _lose(self, why: str) -> None:
        self.close()
        waiting, self._requests = self._requests, {}
        for request in waiting.values():
            request.on_answer({"ok": False, "error": f"launcher: {request.op}: it ended first ({why})"})
        self._on_lost(why)
