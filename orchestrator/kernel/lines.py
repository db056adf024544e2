"""Reads and writes lines over a descriptor without blocking, for both ends of a lab's serial line."""

from __future__ import annotations

import os


class LineStream:
    """Reads complete lines from the descriptor `fd` and writes queued bytes to `out` (None: to `fd`); makes
    both non-blocking.

    window: the most bytes that may be sent but not yet acknowledged by the other side (0: no limit).
    """

    def __init__(self, fd: int, window: int = 0, out: int | None = None) -> None:
        self.fd = fd
        self._out_fd = fd if out is None else out
        for number in (self.fd, self._out_fd):
            os.set_blocking(number, False)
        self.window = window
        self.received = 0  # bytes read so far
        self._written = 0
        self._acknowledged = 0
        self.ended = False
        self._partial = b""
        self._out = bytearray()

    def fileno(self) -> int:
        """Returns the descriptor for reading, for selectors."""
        return self.fd

    @property
    def pending(self) -> bool:
        """Whether queued bytes wait only for the descriptor, not for an acknowledgement, so that they may be
        written now.
        """
        return bool(self._out) and self._allowed() > 0

    def acknowledge(self, received: int) -> None:
        """Records that the other side has read `received` bytes since the beginning, and writes what this
        allows.
        """
        self._acknowledged = received
        self.flush()

    def read(self) -> list[bytes]:
        """Returns the lines that are complete now, without line ends or empty lines; sets `ended` when the
        other side has closed.
        """
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        # the other side has reset the connection, or a terminal reports EIO: both mean that it is gone
        except OSError:
            data = b""
        self.received += len(data)
        if not data:
            self.ended = True
        *lines, self._partial = (self._partial + data).split(b"\n")
        return [line for line in lines if line.strip()]

    def queue(self, line: bytes) -> None:
        """Queues a line and writes as much as the descriptor takes now; `flush` writes the rest later."""
        self._out += line + b"\n"
        self.flush()

    def flush(self) -> None:
        """Writes as many queued bytes as the descriptor takes now and the window allows; on an error, sets
        `ended` and drops the rest.
        """
        try:
            while self._out and (allowed := self._allowed()):
                written = os.write(self._out_fd, self._out[:allowed])
                self._written += written
                del self._out[:written]
        except BlockingIOError:
            return
        except OSError:
            self.ended = True
            self._out.clear()

    def _allowed(self) -> int:
        return max(0, self.window - (self._written - self._acknowledged)) if self.window else 65536
