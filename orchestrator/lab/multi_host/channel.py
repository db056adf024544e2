"""The lab process's end of the connection to a part: sends requests, passes on answers and events, detects a
lost part.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import STRANGE, LineBuffer, LineError, Message, encode
from orchestrator.lab.launcher import Request
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.encoding import BEATS, encode_operation, silence_s
from orchestrator.lab.operations import Operation

READ_BYTES = 1 << 18
GONE_S = 5.0  # s; longest time from the end of the connection to the end of the process that carried it
PR_SET_PDEATHSIG = 1
SHOWN = 400  # number of characters shown of the last error output


class Channel:
    """The connection to one part. lost: why it has ended; None while it is open."""

    def __init__(
        self, loop: Loop, name: str, argv: Sequence[str], log: Path, on_event: OnMessage,
        on_lost: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.name = name
        self.lost: str | None = None
        self._loop, self._log = loop, log
        self._silence_s = silence_s()
        self._on_event, self._on_lost = on_event, on_lost
        self._ids = itertools.count(1)
        self._requests: dict[int, Request] = {}
        self._buffer = LineBuffer()
        self._came: list[Message] = []  # messages that arrived while this side was sending, not yet handled
        self._wrong = ""  # the reason why the line after these messages is not a message
        self._heard = time.monotonic()
        self._socket, theirs = socket.socketpair()
        with theirs, log.open("ab") as errors:
            self._process = _started(argv, theirs, errors)
        loop.watch(self._socket.fileno(), self._readable)
        self._beats = loop.every(round(self._silence_s / BEATS * SECOND), self._beat)

    @property
    def pid(self) -> int:
        return self._process.pid

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        """Sends an operation of agents to the part; the arguments are those of Launcher.submit."""
        return self.ask("submit", encode_operation(request), on_answer, on_event)

    def ask(self, verb: str, fields: Message, on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        """Sends a request with a verb of the part and returns its id; `on_answer` gets {ok, value} or {ok,
        error}. Raises LabError if the connection has ended.
        """
        if self.lost is not None:
            raise LabError(f"host {self.name}: {verb}: {self.lost}")
        number = next(self._ids)
        self._requests[number] = Request(verb, on_answer, on_event)
        self._send({"id": number, "verb": verb, **fields})
        return number

    def expect_end(self) -> None:
        """Makes the end of the connection count as no error from now on."""
        self._on_lost = lambda _: None

    def close(self) -> None:
        """Closes the connection, and kills the process that carried it unless that ends within 5 s."""
        self.expect_end()
        self._lose("the line was closed")
        try:
            self._process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Message) -> None:
        """Sends the whole line and stores input that arrives meanwhile, so that two writing sides never block
        each other.
        """
        data = encode(message)
        self._socket.setblocking(False)
        while data and self.lost is None:
            readable, writable, _ = select.select([self._socket], [self._socket], [], self._silence_s)
            if not readable and not writable:
                self._lose(f"it takes nothing for {self._silence_s:g} s")
            if readable:
                self._receive()
            if writable and self.lost is None:
                with contextlib.suppress(BlockingIOError):
                    data = data[self._write(data) :]
        if self._came or self._wrong:
            self._loop.at(self._loop.clock.now_ns(), self._deliver)

    def _write(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self._lose(error.strerror or str(error))
            return 0

    def _readable(self) -> None:
        self._receive()
        self._deliver()

    def _receive(self) -> None:
        try:
            chunk = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._lose("")
            return
        self._heard = time.monotonic()
        if self._wrong:
            return
        try:
            self._came += self._buffer.feed(chunk)
        except LineError as error:  # such as the output of a shell before the part's program started
            self._came += error.before
            self._wrong = f"its answer is not ours ({error}); does its shell print something?"

    def _deliver(self) -> None:
        while self._came:
            try:
                self._take(self._came.pop(0))
            except STRANGE as error:
                self._lose(f"it sent what no part sends: {type(error).__name__}: {str(error)[:200]}")
        if self._wrong:
            self._lose(self._wrong)

    def _take(self, message: Message) -> None:
        number = message.get("id")
        if number is None:
            if "event" in message:
                self._on_event(message["event"])
            return
        request = self._requests.get(number)
        if request is None:
            return  # the answer to a request that is no longer waited for
        if "event" in message:
            if request.on_event is not None:
                request.on_event(message["event"])
            return
        answer = message["answer"]
        del self._requests[number]
        request.on_answer(answer)

    def _beat(self) -> None:
        if self.lost is None:
            self._send({"beat": time.time_ns()})
        if self.lost is None and time.monotonic() - self._heard > self._silence_s:
            self._lose(f"not a word for {self._silence_s:g} s")

    def _lose(self, why: str) -> None:
        if self.lost is not None:
            return
        self._beats.cancelled = True
        self._loop.unwatch(self._socket.fileno())
        self._socket.close()
        self.lost = why or self._last_words()
        waiting, self._requests = self._requests, {}
        for request in waiting.values():
            request.on_answer({"ok": False, "error": f"host {self.name}: {request.op}: {self.lost}"})
        self._on_lost(self.lost)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GONE_S)
        said = " / ".join(self._log.read_text(errors="replace").split("\n")[-6:]).strip(" /")
        return f"its part ended: {said[-SHOWN:] or 'without a word'}"


def _started(argv: Sequence[str], side: socket.socket, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    prctl = ctypes.CDLL(None).prctl
    try:
        return subprocess.Popen(
            list(argv), stdin=side.fileno(), stdout=side.fileno(), stderr=errors, start_new_session=True,
            # The signal ends ssh when this process dies, so that the part reads the end of its input and
            # removes its nodes.
            preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
        )  # fmt: skip
    except OSError as error:
        raise LabError(
            f"{argv[0]}: {error.strerror}; apt-get install openssh-client, or correct VNET_SSH"
        ) from error
