"""Receives arguments, environment and output files in a lab process that was started ahead of them
(orchestrator/kernel/ahead.py).
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

WAIT = "--wait"  # the only argument of a waiting process; its standard input is the socket
LARGEST = 1 << 17  # bytes of the longest message; a socket holds more by default


def take() -> list[str] | None:
    """Waits for a message on standard input, a socket. The message replaces the environment, standard output
    and standard error; standard input becomes /dev/null. Returns the message's arguments. None if the other
    end closes without a message.
    """
    with socket.socket(fileno=os.dup(0)) as orders:
        message, files, _, _ = socket.recv_fds(orders, LARGEST, 2)
    if not message:
        return None
    told = json.loads(message)
    with Path(os.devnull).open("rb") as nothing:
        for ours, place in zip((nothing.fileno(), *files), range(3), strict=True):
            os.dup2(ours, place)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update(told["env"])
    argv: list[str] = told["argv"]
    return argv
