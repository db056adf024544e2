"""Copies files from a guest: message records, with times converted to the lab's clock, and the logs of its
programs.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from orchestrator.lab.errors import LabError
from orchestrator.lab.operations import Fetch
from orchestrator.lab.vm.clocks import GuestClock
from orchestrator.lab.vm.dialogue import Dialogue, ask

CHUNK_BYTES = 48 * 1024  # largest number of bytes in one answer of a launcher
# Columns with times for each kind of record, counted from the left or from the right, since a quoted name or
# a detail can contain commas.
_TIMES = {"S": (4, 5, 6), "R": (-2,), "C": (3,), "B": (-6,), "W": (-5,), "P": (-2,)}


def corrected(line: str, to_lab: Callable[[int], int]) -> str:
    """Returns one record line with its times converted to the lab's clock; 0 (an unknown time) stays 0."""
    fields = line.split(",")
    for place in _TIMES.get(fields[0], ()):
        if (time := int(fields[place])) != 0:
            fields[place] = str(to_lab(time))
    return ",".join(fields)


class Fetched:
    """A growing file of a guest and the size fetched so far; `take` receives each new part."""

    def __init__(self, path: str, take: Callable[[bytes], None], chunk_bytes: int = CHUNK_BYTES) -> None:
        self.path = path
        self.offset = 0
        self._take = take
        self._chunk_bytes = chunk_bytes

    def rest(self) -> Dialogue[None]:
        """Fetches the file up to its present end, as a dialogue; fetches nothing if it does not exist. Raises
        LabError for a part that is too long.
        """
        while True:
            answer = yield from ask(Fetch(self.path, self.offset, self._chunk_bytes))
            if (size := answer["size"]) is None:
                return
            data = base64.b64decode(answer.get("data") or "")
            if not isinstance(size, int) or len(data) > self._chunk_bytes:
                raise LabError(f"{self.path}: its answer holds {len(data)} bytes, of {self._chunk_bytes}")
            self.offset += len(data)
            self._take(data)
            if not data or self.offset >= size:
                return


class Records:
    """Appends a guest's complete record lines to the run's file `path`, with times of the lab's clock; drops
    them while `path` is None.
    """

    def __init__(self, clock: GuestClock) -> None:
        self._clock = clock
        self._partial = b""
        self.path: Path | None = None

    def forget(self) -> None:
        """Drops the stored incomplete line: the machine's file is new, so the rest never arrives."""
        self._partial = b""

    def take(self, data: bytes) -> None:
        """Appends the complete lines of the new data; stores the rest of the last line until more arrives."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        text = "".join(corrected(line.decode(), self._clock.to_lab) + "\n" for line in lines if line)
        if text and self.path is not None:
            # one write at the end of the file, because the launcher appends to it too
            with self.path.open("a") as out:
                out.write(text)


def appender(path: Path) -> Callable[[bytes], None]:
    """Returns a function that appends each given part to the log file at `path`."""

    def take(data: bytes) -> None:
        with path.open("ab") as out:
            out.write(data)

    return take
