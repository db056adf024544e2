"""Runs commands on nodes through a lab's control socket: on many nodes at once, or on one with live input."""

from __future__ import annotations

import codecs
import os
import selectors
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.cli.control import Control, ControlError, Message, decode, encode

AT_ONCE = 32  # largest number of commands at a time; more would wait in the launcher
Output = Callable[[str, str, bytes], None]  # called with node, stream and data


@dataclass
class Ended:
    """The result of a command on a node: output and exit status, or the reason why it could not start."""

    node: str
    status: int | None = None
    error: str | None = None
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)


def run_on(
    control: Control, nodes: Sequence[str], argv: Sequence[str], output: Output | None = None
) -> list[Ended]:
    """Runs `argv` without input on all nodes, AT_ONCE at a time; returns the results in the order of `nodes`.

    Passes (node, stream, data) to `output` as data arrives.
    """
    waiting = list(reversed(nodes))
    flying: dict[int, Ended] = {}
    barriers: dict[
        int, int
        # requests whose answers show that `exec` has arrived; input could overtake it, so it waits for them
    ] = {}
    ended: dict[str, Ended] = {}
    messages = control.messages()
    while waiting or flying:
        while waiting and len(flying) < AT_ONCE:
            node = waiting.pop()
            sent = control.send("exec", node=node, argv=list(argv), env={}, tty=None)
            flying[sent] = Ended(node)
            barriers[control.send("status")] = sent
        message = next(messages)
        if message.get("id") in barriers:
            control.send("input", target=barriers.pop(message["id"]), eof=True)
        _take(message, flying, ended, output)
    return [ended[node] for node in nodes]


def _take(message: Message, flying: dict[int, Ended], ended: dict[str, Ended], output: Output | None) -> None:
    session = flying.get(message.get("id", 0))
    if session is None:
        return  # the answer to an `input`, or an event for all clients
    if message.get("event") == "output":
        data, stream = decode(message), message.get("stream", "stdout")
        (session.stderr if stream == "stderr" else session.stdout).extend(data)
        if output:
            output(session.node, stream, data)
    elif "event" not in message:
        session.status = message.get("status")
        session.error = None if message.get("ok") else str(message.get("error", "refused without a reason"))
        ended[session.node] = flying.pop(message["id"])


class Prefixer:
    """Joins pieces of output to lines, and passes each line to `write` after the node's name, which is padded
    to `width`.
    """

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write = write
        self._width = width
        self._open: dict[tuple[str, str], str] = {}
        self._decoders: dict[tuple[str, str], codecs.IncrementalDecoder] = {}

    def __call__(self, node: str, stream: str, data: bytes) -> None:
        """Takes a piece of a node's output, and writes the lines that it completes."""
        key = (node, stream)
        decoder = self._decoders.setdefault(key, codecs.getincrementaldecoder("utf-8")("replace"))
        *lines, self._open[key] = (self._open.get(key, "") + decoder.decode(data)).split("\n")
        for line in lines:
            self._line(node, line.removesuffix("\r"))

    def flush(self) -> None:
        """Writes the last lines that have no newline."""
        for (node, _), rest in self._open.items():
            if rest:
                self._line(node, rest)
        self._open.clear()

    def _line(self, node: str, line: str) -> None:
        self._write(f"{node:<{self._width}}  {line}")


Resized = Callable[[], "tuple[int, int] | None"]


def attached(
    control: Control,
    node: str,
    argv: Sequence[str],
    *,
    stdin: int | None,
    output: Callable[[str, bytes], None],
    tty: tuple[int, int] | None = None,
    resized: Resized = lambda: None,
) -> int:
    """Runs one command with input from the descriptor `stdin` (None: no input); returns its exit status.

    Passes (stream, data) to `output` as data arrives. tty: rows and columns if the command gets a terminal,
    else None. resized: function that returns new rows and columns once after a change, else None. Raises
    ControlError if the command cannot be started.
    """
    size = {"rows": tty[0], "cols": tty[1]} if tty else None
    env = {"TERM": os.environ.get("TERM", "dumb")} if tty else {}
    session = control.send("exec", node=node, argv=list(argv), env=env, tty=size)
    barrier = control.send("status")  # see `barriers` in run_on
    with selectors.PollSelector() as selector:  # epoll cannot wait for plain files as standard input
        selector.register(control, selectors.EVENT_READ)
        while True:
            for message in _arrived(control, selector, session):
                if message.get("id") == barrier:
                    _open_input(control, selector, stdin, session)
                elif message.get("id") == session and message.get("event") == "output":
                    output(message.get("stream", "stdout"), decode(message))
                elif message.get("id") == session and "event" not in message:
                    return _status(message)
            if (new := resized()) is not None:
                control.send("resize", target=session, rows=new[0], cols=new[1])


def _open_input(control: Control, selector: selectors.BaseSelector, stdin: int | None, session: int) -> None:
    if stdin is None:
        control.send("input", target=session, eof=True)
    else:
        selector.register(stdin, selectors.EVENT_READ)


def _arrived(control: Control, selector: selectors.BaseSelector, session: int) -> list[Message]:
    """Waits up to 0.5 s for input and messages; forwards input to the session, and returns the messages."""
    arrived: list[Message] = []
    for key, _ in selector.select(timeout=0.5):
        if key.fd == control.fileno():
            arrived += control.available()
        elif not _forward(control, key.fd, session):
            selector.unregister(key.fd)
    return arrived


def _forward(control: Control, stdin: int, session: int) -> bool:
    data = os.read(stdin, 4096)
    if data:
        control.send("input", target=session, data=encode(data))
    else:
        control.send("input", target=session, eof=True)
    return bool(data)


def _status(message: Message) -> int:
    if not message.get("ok"):
        raise ControlError(str(message.get("error", "refused without a reason")))
    return int(message["status"])
