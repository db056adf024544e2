"""Limits the server's connections: ends those of silent clients, and refuses too many from one address."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import weakref
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0  # longest time in s to receive a whole request, from the connection or the last answer
MOST_WAITING = 64  # largest number of connections without a whole request; one more ends the oldest
MOST_OF_A_PEER = 128  # largest number of connections from one address, except this machine's
LOOPBACK = ("127.", "::1")
AT_ONCE = 8  # largest number of connections that are accepted before earlier ones are judged
_SHORT = (errno.EMFILE, errno.ENFILE)

_RECEIVING = (h11.IDLE, h11.SEND_BODY)
_waiting: dict[H11Protocol, asyncio.TimerHandle] = {}  # in the order of their age, the oldest first


class BoundedProtocol(H11Protocol):
    """Ends a connection that has not sent a whole request within REQUEST_S; if more than MOST_WAITING such
    connections exist, ends the oldest.

    So any number of silent clients cannot keep out a client that sends its request at once.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._judge()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._judge()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _judge(self) -> None:
        upgraded = self.transport.get_protocol() is not self
        if upgraded or self.transport.is_closing() or self.conn.their_state not in _RECEIVING:
            self._forget()
        elif self not in _waiting:
            _waiting[self] = self.loop.call_later(REQUEST_S, self.transport.abort)
            if len(_waiting) > MOST_WAITING:
                next(iter(_waiting)).transport.abort()

    def _forget(self) -> None:
        if (timer := _waiting.pop(self, None)) is not None:
            timer.cancel()


class Listener(socket.socket):
    """A listening socket that closes connections from one address beyond MOST_OF_A_PEER, before a TLS
    handshake; addresses of this machine have no limit.

    It never runs out of descriptors, since asyncio would then accept no client for a second and log a
    traceback for each place of its backlog. It accepts AT_ONCE connections in one turn of the loop, so that
    the oldest silent ones end in between. It keeps a spare descriptor to accept and close a connection for
    which there is no other.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._of: dict[str, list[weakref.ref[socket.socket]]] = {}
        self._accepted = 0  # number of connections accepted in this turn of the loop
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts a connection as socket.accept does. Raises BlockingIOError, as without a client, if it has
        closed the connection because its address or the process has too many, and after AT_ONCE connections
        until the next turn of the loop.
        """
        if self._accepted >= AT_ONCE:
            raise BlockingIOError
        if not self._accepted:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._accepted += 1
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in _SHORT:
                self._refuse()
                raise BlockingIOError from error
            raise
        peer = str(address[0])
        if peer.startswith(LOOPBACK):
            return connection, address
        known = [ref for ref in self._of.get(peer, []) if (one := ref()) is not None and one.fileno() >= 0]
        if len(known) >= MOST_OF_A_PEER:
            connection.close()
            raise BlockingIOError
        self._of[peer] = [*known, weakref.ref(connection)]
        return connection, address

    def _next_turn(self) -> None:
        self._accepted = 0

    def _refuse(self) -> None:
        """Ends the oldest connection without a request, so that its descriptor becomes free for the next
        client. If there is no such connection, closes the client that waits longest.
        """
        if _waiting:
            next(iter(_waiting)).transport.abort()
            return
        os.close(self._spare)
        try:
            super().accept()[0].close()
        except (
            OSError
        ):  # the client has disconnected, or another thread took the descriptor: the next turn tries again
            pass
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Closes the socket and the spare descriptor."""
        super().close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
