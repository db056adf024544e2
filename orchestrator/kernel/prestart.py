"""Starts the lab process while the lab is still being planned, so that its modules load meanwhile.

The process waits for its arguments, environment and open files (orchestrator/lab/start_arguments.py). If none
arrive, it ends with this process.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from orchestrator.kernel.lab_command import LIGHT, environment
from orchestrator.lab.start_arguments import LARGEST, WAIT


@dataclass(frozen=True)
class Begun:
    """The process, and the socket that it waits at."""

    process: subprocess.Popen[bytes]
    orders: socket.socket


_begun: list[Begun] = []  # at most one


def begin() -> None:
    """Starts a process, unless one waits already; ignores errors, which the start of the lab reports."""
    if _begun:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, *LIGHT, WAIT],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(os.environ, {}, {}),
            start_new_session=True,
            cwd="/",
        )
        _begun.append(Begun(process, ours))


def take(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> subprocess.Popen[bytes] | None:
    """Passes `argv` to the waiting process and returns it; None if none waits for these arguments."""
    start = [sys.executable, *LIGHT]
    if not _begun or list(argv[: len(start)]) != start:
        return None
    begun = _begun.pop()
    message = json.dumps({"argv": list(argv[len(start) :]), "env": dict(env)}).encode()
    with begun.orders, suppress(OSError):  # it has ended; the next process reports the error
        if len(message) < LARGEST:
            socket.send_fds(begun.orders, [message], [output.fileno(), errors.fileno()])
            return begun.process
    begun.process.wait()
    return None
