"""Runs a command on a node with input and output as bytes in memory, for Ansible's connection plug-in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from orchestrator.cli.control import Control, ControlError, Message, decode, encode

CHUNK_BYTES = 48 * 1024  # data of one input message; under UML, messages share a serial line
AHEAD = 4  # largest number of chunks that the lab has not accepted yet


def pieces(data: bytes) -> Iterator[bytes]:
    """Yields `data` in chunks of at most CHUNK_BYTES."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def piped(
    control: Control,
    node: str,
    argv: Sequence[str],
    chunks: Iterable[bytes],
    output: Callable[[str, bytes], None],
) -> int:
    """Runs `argv` on `node` with `chunks` as its input; passes (stream, data) to `output` as data arrives.

    Returns the exit status (128 + n after signal n). Raises ControlError if the command cannot be started.
    """
    waiting = iter(chunks)
    session = control.send("exec", node=node, argv=list(argv), env={}, tty=None)
    barrier = control.send("status")  # input could overtake `exec`, so the code first waits for this answer
    flying: set[int] = set()
    fed = False
    for message in control.messages():
        identity = message.get("id")
        if identity == session:
            if (status := _session(message, output)) is not None:
                return status
        elif identity == barrier or identity in flying:
            flying.discard(identity)
            fed = fed or _feed(control, session, waiting, flying)
    raise AssertionError("unreachable: messages() never ends by itself")


def _session(message: Message, output: Callable[[str, bytes], None]) -> int | None:
    if message.get("event") == "output":
        output(message.get("stream", "stdout"), decode(message))
    elif "event" not in message:
        if not message.get("ok"):
            raise ControlError(str(message.get("error", "refused without a reason")))
        return int(message["status"])
    return None


def _feed(control: Control, session: int, waiting: Iterator[bytes], flying: set[int]) -> bool:
    """Sends chunks until AHEAD of them are unanswered; returns True once it has sent the end of input."""
    while len(flying) < AHEAD:
        data = next(waiting, None)
        if data is None:
            control.send("input", target=session, eof=True)
            return True
        flying.add(control.send("input", target=session, data=encode(data)))
    return False
