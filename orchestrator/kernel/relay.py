"""Carries many control clients over one serial line; each client outside has its own connection inside.

Lines are JSON objects, in both directions: `{"c": 3, "line": "..."}` carries a line of client 3 and `{"c": 3,
"eof": true}` its end; a client's first line opens its connection. Objects without `c` are left to the callers
of this module.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
from pathlib import Path
from typing import Any

from orchestrator.kernel.lines import LineStream


class Relay:
    """The part that both ends share: one stream for each client, by its number."""

    def __init__(self, serial: LineStream, selector: selectors.BaseSelector) -> None:
        self.serial = serial
        self.selector = selector
        self.clients: dict[int, tuple[LineStream, socket.socket]] = {}

    def add(self, number: int, connection: socket.socket) -> LineStream:
        """Watches a client's connection, sends its lines over the serial line, and returns its stream."""
        stream = LineStream(connection.fileno())
        self.clients[number] = (stream, connection)
        self.selector.register(stream, selectors.EVENT_READ, lambda: self._from_client(number))
        return stream

    def drop(self, number: int) -> None:
        """Closes a client's connection; does nothing if it is closed already."""
        if entry := self.clients.pop(number, None):
            stream, connection = entry
            stream.flush()
            self.selector.unregister(stream)
            connection.close()

    def deliver(self, number: int, message: dict[str, Any]) -> None:
        """Sends a client the line of a message that arrived over the serial line, or closes its connection if
        the message has `eof`; does nothing if the client has disconnected.
        """
        if number not in self.clients:
            return  # the client disconnected before its answer arrived
        if message.get("eof"):
            self.drop(number)
            return
        stream = self.clients[number][0]
        stream.queue(message["line"].encode())
        if stream.pending:
            self._watch_output(number)

    def _from_client(self, number: int) -> None:
        stream = self.clients[number][0]
        stream.flush()
        if not stream.pending:
            self.selector.modify(stream, selectors.EVENT_READ, lambda: self._from_client(number))
        for line in stream.read():
            self._send({"c": number, "line": line.decode(errors="replace")})
        if stream.ended:
            self._send({"c": number, "eof": True})
            self.drop(number)

    def _watch_output(self, number: int) -> None:
        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        self.selector.modify(self.clients[number][0], both, lambda: self._from_client(number))

    def _send(self, message: dict[str, Any]) -> None:
        self.serial.queue(json.dumps(message).encode())


class GuestRelay(Relay):
    """The end inside the guest: connects to the lab's control socket once for each client outside."""

    def __init__(self, control: Path, serial: LineStream, selector: selectors.BaseSelector) -> None:
        super().__init__(serial, selector)
        self.control = control

    def from_host(self, message: dict[str, Any]) -> None:
        """Passes one line of a client to the lab, or the client's end. Connects first if the client is new;
        if that fails, answers with the connection's end.
        """
        number = int(message["c"])
        if number not in self.clients and not message.get("eof") and not self._connect(number):
            self._send({"c": number, "eof": True})
            return
        self.deliver(number, message)

    def _connect(self, number: int) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(os.fspath(self.control))
        # the lab does not serve yet, or no longer: the client outside sees its connection close
        except OSError:
            connection.close()
            return False
        self.add(number, connection)
        return True


class HostRelay(Relay):
    """The end outside the guest: listens on control.sock and numbers the clients."""

    def __init__(self, serial: LineStream, selector: selectors.BaseSelector) -> None:
        super().__init__(serial, selector)
        self._next = 0
        self._listener: socket.socket | None = None

    def listen(self, path: Path) -> None:
        """Accepts clients on the Unix socket `path`, which only this user can open."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        previous = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(previous)
        listener.listen(64)
        self._listener = listener
        self.selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))

    def close(self) -> None:
        """Disconnects all clients and stops listening."""
        for number in list(self.clients):
            self.drop(number)
        if self._listener is not None:
            self.selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._next += 1
        self.add(self._next, connection)
