"""Tests that silent clients of the live page neither block others nor stay connected."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn

from orchestrator.cli.page import connections
from orchestrator.cli.page.connections import BoundedProtocol, Listener

HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"
# Reads a port, and whether to send requests; connects 200 times, prints a line, and keeps the connections
# until its input ends.
CROWD = """
import socket, sys
port, talk = map(int, sys.stdin.readline().split())
held = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
for one in held:
    try:
        one.sendall(b"GET / HTTP/1.1\\r\\nHost: here\\r\\n" + (b"\\r\\n" if talk else b"X: "))
    except OSError:
        pass
print("all", flush=True)
sys.stdin.read()
"""
# A client: reads the server's port from its input, sends a request there, and prints the first line of the
# answer.
ONE = """
import socket, sys
one = socket.create_connection(("127.0.0.1", int(sys.stdin.readline())), timeout=20)
one.sendall(b"GET / HTTP/1.1\\r\\nHost: here\\r\\nConnection: close\\r\\n\\r\\n")
print(one.recv(1000).decode().splitlines()[0], flush=True)
"""
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


def process(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def spoken(client: subprocess.Popen[str], line: str) -> str:
    """Writes a line to the process and returns the one that it answers."""
    assert client.stdin and client.stdout
    client.stdin.write(line)
    client.stdin.flush()
    return client.stdout.readline()


@pytest.mark.parametrize("talk", [False, True], ids=["silent", "all of them ask"])
def test_more_clients_than_descriptors_end_nothing(talk: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Shows that clients which arrive at once, more than the process may have open, keep nobody out. asyncio
    alone prints a traceback for each and accepts nobody for a second.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    crowd = [process(CROWD) for _ in range(2)]  # processes with descriptors of their own
    last = process(ONE)

    async def test(port: int) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 100, hard))
        said = [await asyncio.to_thread(spoken, client, f"{port} {int(talk)}\n") for client in crowd]
        assert said == ["all\n"] * 2
        assert await asyncio.to_thread(spoken, last, f"{port}\n") == "HTTP/1.1 200 OK\n"

    try:
        serving(test)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for client in (*crowd, last):
            client.communicate()
    assert [record.getMessage() for record in caplog.records] == []


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
