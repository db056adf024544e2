"""Runs a command on a node with input and output as bytes in memory, for Ansible's connection plug-in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from orchestrator.cli.control import Control, ControlError, Message, decode, encode

CHUNK_BYTES = 48 * 1024  # one line of input; under UML it shares a serial line
AHEAD = 4  # chunks in flight: the next is sent when the first of them was accepted


def pieces(data: bytes) -> Iterator[bytes]:
    """`data` in chunks of CHUNK_BYTES."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def piped(
    control: Control,
    node: str,
    argv: Sequence[str],
    chunks: Iterable[bytes],
    output: Callable[[str, bytes], None],
) -> int:
    """Run `argv` on `node` with `chunks` as its input; `output` gets (stream, data) as it arrives.

    Returns the exit status (128 + n after signal n). Raises ControlError if it cannot be started.
    """
    waiting = iter(chunks)
    session = control.send("exec", node=node, argv=list(argv), env={}, tty=None)
    barrier = control.send("status")  # input overtakes queued requests, so it waits until exec was accepted
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
    """Send chunks until AHEAD are in flight; returns True once the end of the input was sent."""
    while len(flying) < AHEAD:
        data = next(waiting, None)
        if data is None:
            control.send("input", target=session, eof=True)
            return True
        flying.add(control.send("input", target=session, data=encode(data)))
    return False
