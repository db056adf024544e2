"""Connects a WebSocket of the page to a shell on a node, or to the serial line of a virtual machine."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections import deque
from pathlib import Path
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from orchestrator.cli.control import ControlError, Message
from orchestrator.cli.page.connection import Connection
from orchestrator.cli.shell import shell_words
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.lab_access import stream

READ_BYTES = 65536
MOST = 1000  # largest number of rows or columns
MOST_WAITING_BYTES = 8 * 2**20
MOST_FLYING = 16  # largest number of messages with keys that the lab has not answered yet


class Said:
    """Buffers a shell's output for the page, so that the lab need not wait for it. If more than
    MOST_WAITING_BYTES wait, sets `overrun` and drops further output.
    """

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self.overrun = asyncio.Event()
        self._waiting_bytes = 0

    def put(self, data: bytes) -> None:
        """Takes a piece of output from the lab; drops it after an overrun."""
        self._waiting_bytes += len(data)
        if self._waiting_bytes > MOST_WAITING_BYTES:
            self.overrun.set()
        if not self.overrun.is_set():
            self.pieces.put_nowait(data)

    async def send(self, socket: WebSocket) -> None:
        """Waits for the next piece of output and sends it to the page."""
        data = await self.pieces.get()
        await socket.send_bytes(data)
        self._waiting_bytes -= len(data)


async def terminal(socket: WebSocket, control: Path, lab: str, node: str) -> None:
    """Runs a shell on a node for the page until either ends; the last message is a text with the reason.

    Keys and output are binary messages; a text message {rows, cols} of the page changes the size of the
    terminal.
    """
    try:
        connection = await Connection.open(control)
    except ControlError as error:
        await _end(socket, str(error))
        return
    said = Said()

    def output(event: Message) -> None:
        if event.get("event") == "output":
            said.put(base64.b64decode(event["data"]))

    try:
        number, ended = connection.send(
            "exec", output, node=node, argv=list(shell_words(lab, node)), env={"TERM": "xterm-256color"},
            tty={"rows": 24, "cols": 80},
        )  # fmt: skip
        # Input could overtake `exec`, so the page waits for the answer to a request that was sent after
        # `exec`.
        await connection.call("status")
        tasks: set[asyncio.Future[Any]] = {
            asyncio.create_task(_keys(socket, connection, number)),
            asyncio.create_task(_screen(socket, said)),
            asyncio.create_task(said.overrun.wait()),
            asyncio.ensure_future(ended),
        }
        _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        if said.overrun.is_set():
            await _end(socket, "ended: it said more than this page could take")
            return
        while not said.pieces.empty():
            await socket.send_bytes(said.pieces.get_nowait())
        await _end(socket, _last_words(ended))
    except ControlError as error:
        await _end(socket, str(error))
    finally:
        await connection.close()


async def console(socket: WebSocket, state_dir: Path, node: str) -> None:
    """Connects the page to a virtual machine's serial line until either ends; then sends a text with the
    reason.

    A serial line has no size, so text messages of the page are ignored.
    """
    try:
        line = await asyncio.to_thread(stream, state_dir, f"vm/{node}/console.sock")
        reader, writer = await asyncio.open_unix_connection(sock=line)
    except (OSError, KernelError) as error:
        why = getattr(error, "strerror", None) or error
        await _end(socket, f"{why}: its machine does not run, or another console is connected")
        return

    async def typed() -> None:
        with contextlib.suppress(WebSocketDisconnect, OSError):
            while (message := await socket.receive())["type"] != "websocket.disconnect":
                if (data := message.get("bytes")) is not None:
                    writer.write(data)
                    await writer.drain()

    async def shown() -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            while data := await reader.read(READ_BYTES):
                await socket.send_bytes(data)

    tasks = {asyncio.create_task(typed()), asyncio.create_task(shown())}
    try:
        _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
    finally:
        writer.close()
    await _end(socket, "the console is closed")


async def _keys(socket: WebSocket, connection: Connection, number: int) -> None:
    """Sends keys and sizes of the page to the lab until the page disconnects. Reads no further message while
    MOST_FLYING are unanswered, so that a page that sends without end is slowed down and takes no memory.
    """
    flying: deque[asyncio.Future[Message]] = deque()
    with contextlib.suppress(WebSocketDisconnect, ControlError):
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if (data := message.get("bytes")) is not None:
                flying.append(
                    connection.send("input", target=number, data=base64.b64encode(data).decode())[1]
                )
            elif (size := _size(message.get("text"))) is not None:
                flying.append(connection.send("resize", target=number, rows=size[0], cols=size[1])[1])
            if len(flying) > MOST_FLYING:
                await flying.popleft()


async def _screen(socket: WebSocket, said: Said) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await said.send(socket)


def _size(text: str | None) -> tuple[int, int] | None:
    try:
        wanted = json.loads(text or "")
        rows, cols = int(wanted["rows"]), int(wanted["cols"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
    return (rows, cols) if 0 < rows <= MOST and 0 < cols <= MOST else None


def _last_words(ended: asyncio.Future[Message]) -> str:
    if not ended.done() or ended.cancelled():
        return "closed"
    error = ended.exception()
    return str(error) if error is not None else f"ended with status {ended.result().get('status')}"


async def _end(socket: WebSocket, text: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(text)
        await socket.close()
