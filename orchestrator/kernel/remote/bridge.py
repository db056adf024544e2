"""Connects standard input and output to a Unix socket, on the other machine."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path

READ_BYTES = 65536
STDIN, STDOUT = 0, 1


def bridge(path: Path) -> None:
    """Copies both ways until either side ends; first sends an empty line, which shows that the socket
    accepted.
    """
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        os.write(STDOUT, b"\n")
        while True:
            ready, _, _ = select.select([STDIN, line.fileno()], [], [])
            if line.fileno() in ready:
                if not (said := line.recv(READ_BYTES)):
                    return
                while said:
                    said = said[os.write(STDOUT, said) :]
            if STDIN in ready:
                if not (typed := os.read(STDIN, READ_BYTES)):
                    return
                line.sendall(typed)
