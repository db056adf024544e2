"""Serves the control socket (or UML's serial line) to many clients: JSON lines, one request after another."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path

from orchestrator.lab import sampling
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import LineBuffer, LineError, Message, encode
from orchestrator.lab.lab import Lab
from orchestrator.lab.relay import Relay
from orchestrator.lab.requests import ANYTIME, WHEN_READY

READ_BYTES = 65536
PASSING = ("status", "exec", "input", "resize", "signal")  # requests that never wait and change no node
SEND_S = 5.0  # a client that does not read for this time is disconnected


class Client:
    """One connection of a client. number: the descriptor from which requests are read."""

    def __init__(self, read: int, write: Callable[[bytes], object], close: Callable[[], object]) -> None:
        self.number = read
        self._write = write
        self._close = close
        self.buffer = LineBuffer()
        self.gone = False

    def send(self, message: Message) -> None:
        """Sends a message; does nothing if the client has gone. Marks the client as gone if the message
        cannot be sent, or not within 5 s on a socket.
        """
        if self.gone:
            return
        try:
            self._write(encode(message))
        except OSError:
            self.gone = True

    def close(self) -> None:
        self._close()


class Server:
    """Serves all clients of a lab.

    Requests wait in a queue, so that a slow request is not interrupted by the next. `status`, commands on
    nodes and their input do not wait, unless the same client has a request before them.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._relay = Relay(lab)
        self._clients: dict[int, Client] = {}
        self._queue: deque[tuple[Client, Message]] = deque()
        self._served: Client | None = None
        self._looking: set[int] = set()  # clients that requested samples
        self._listener: socket.socket | None = None

    def listen(self, path: Path) -> None:
        """Listens on a Unix socket at `path`, to which only this user can connect."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The umask is set before the socket exists, so that no other account can connect to it even for a
        # moment.
        previous = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        finally:
            os.umask(previous)
        self._listener.listen(16)
        self._lab.loop.watch(self._listener.fileno(), self._accept)

    def serve_descriptor(self, number: int) -> None:
        """Serves one client on the inherited descriptor `number`, for reading and writing."""
        self._admit(Client(number, lambda data: _write_all(number, data), lambda: os.close(number)))

    def close(self) -> None:
        """Stops listening and disconnects all clients; their running commands get SIGHUP unless the lab is
        interrupted.
        """
        if self._listener:
            self._lab.loop.unwatch(self._listener.fileno())
            self._listener.close()
        for client in list(self._clients.values()):
            self._drop(client)

    def _accept(self) -> None:
        assert self._listener is not None
        connection, _ = self._listener.accept()
        connection.settimeout(SEND_S)
        self._admit(Client(connection.fileno(), connection.sendall, connection.close))

    def _admit(self, client: Client) -> None:
        self._clients[client.number] = client
        self._lab.loop.watch(client.number, lambda: self._readable(client))

    def _readable(self, client: Client) -> None:
        try:
            chunk = os.read(client.number, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._drop(client)
            return
        wrong = ""
        try:
            messages = client.buffer.feed(chunk)
        except LineError as error:
            messages, wrong = error.before, f"request: {error}; send one JSON object a line"
        for message in messages:
            self._take(client, message)
        self._work()
        if wrong:
            client.send({"ok": False, "error": wrong})
            self._drop(client)

    def _take(self, client: Client, message: Message) -> None:
        op = message.get("op")
        waits = client is self._served or any(client is before for before, _ in self._queue)
        # Such a request must not wait behind another client's slow request, and must not overtake a request
        # of its own client.
        if op in PASSING and not waits:
            self._answer(client, message)
        else:
            self._queue.append((client, message))

    def _work(self) -> None:
        if self._served is not None:
            return
        try:
            while self._queue:
                self._served, message = self._queue.popleft()
                self._answer(self._served, message)
        finally:
            self._served = None

    def _answer(self, client: Client, message: Message) -> None:
        number, op = message.get("id"), str(message.get("op"))
        try:
            fields = self._perform(client, op, message)
        except LabError as error:
            client.send({"id": number, "ok": False, "error": str(error)})
        except OSError as error:  # the machine refused the operation; the lab continues
            client.send({"id": number, "ok": False, "error": f"{op}: {error}"})
        except (KeyError, TypeError, ValueError) as error:
            text = f"{op}: not of the form that docs/contracts.md gives: {type(error).__name__} {error}"
            client.send({"id": number, "ok": False, "error": text})
        else:
            if fields is not None:
                client.send({"id": number, "ok": True, **fields})

    def _perform(self, client: Client, op: str, message: Message) -> Message | None:
        if op == "watch":
            self._lab.events.listen(client.send)
            return {"ready": self._lab.ready}
        if op == "measure":
            self._looking.add(client.number)
            return {"samples": sampling.look(self._lab)}
        if op in ANYTIME:
            return ANYTIME[op](self._lab, message)
        known = op in WHEN_READY or op in ("exec", "input", "resize", "signal")
        if not known:
            raise LabError(f"{op}: no such operation; see docs/contracts.md")
        if not self._lab.ready:
            raise LabError(
                f"{op}: the lab is still being made ({self._lab.events.phase_name}); ask when it is ready"
            )
        if op in WHEN_READY:
            return WHEN_READY[op](self._lab, message)
        (self._relay.execute if op == "exec" else self._relay.forward)(client, message)
        return None

    def _drop(self, client: Client) -> None:
        client.gone = True
        self._lab.loop.unwatch(client.number)
        self._lab.events.deafen(client.send)
        if not self._lab.loop.interrupted:
            with contextlib.suppress(LabError):  # the launcher has ended, and with it the client's commands
                self._relay.hang_up(client)
                self._look_away(client)
        self._clients.pop(client.number, None)
        client.close()

    def _look_away(self, client: Client) -> None:
        if client.number not in self._looking:
            return
        self._looking.remove(client.number)
        if not self._looking:
            sampling.look_away(self._lab)


def _write_all(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]
