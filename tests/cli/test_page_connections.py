"""Tests that silent clients of the live page neither block others nor stay connected."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvicorn

from orchestrator.cli.page import connections
from orchestrator.cli.page.connections import BoundedProtocol, Listener

HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def hello(scope: object, receive: object, send: Callable[[dict[str, object]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def serving(test: Callable[[int], Awaitable[None]]) -> None:
    """Starts a server and runs the test with the server's port."""

    async def both() -> None:
        listener = Listener(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        server = uvicorn.Server(
            uvicorn.Config(hello, http=BoundedProtocol, lifespan="off", log_level="error")
        )
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.wait_for(test(listener.getsockname()[1]), 30)
        finally:
            server.should_exit = True
            await task

    asyncio.run(both())


async def answered(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"Connection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.split(b"\r\n")[0]


async def ended(streams: Streams) -> None:
    with suppress(ConnectionResetError):
        assert await streams[0].read() == b""


def test_many_silent_clients_do_not_keep_others_out() -> None:
    async def test(port: int) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, writer in silent:
            writer.write(HEAD + b"X: ")
        assert await answered(port) == b"HTTP/1.1 200 OK"
        for streams in silent[: 200 - connections.MOST_WAITING]:
            await ended(streams)
        for _, writer in silent:
            writer.close()

    serving(test)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HEAD + b"X: ",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf",
        HEAD + b"\r\n" + HEAD + b"X: ",
    ],
    ids=["nothing", "half a head", "half a body", "half a second head"],
)
def test_a_request_has_to_come_in_time(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.3)

    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        with suppress(ConnectionResetError):
            while await reader.read(1 << 16):
                pass
        writer.close()

    serving(test)


def test_a_peer_of_the_network_has_so_many_connections_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOPBACK", ("none",))
    monkeypatch.setattr(connections, "MOST_OF_A_PEER", 3)

    async def test(port: int) -> None:
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        await ended(await asyncio.open_connection("127.0.0.1", port))
        kept.pop()[1].close()
        await asyncio.sleep(0.1)
        assert await answered(port) == b"HTTP/1.1 200 OK"
        for _, writer in kept:
            writer.close()

    serving(test)
