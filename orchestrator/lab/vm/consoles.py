"""Limits the size of the log files of machines' consoles, to which a machine can write as fast as QEMU
emulates its line.

QEMU opens such a file for appending (`append` in the domain), so it continues after the file was shortened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.guest import Guest

PERIOD_NS = SECOND
MOST_BYTES = 64 << 20  # largest size of a console's file; a boot prints some 50 KiB
KEPT_BYTES = 1 << 20  # bytes kept of the log's beginning, and as many of its end
REMEDY = "see what the machine prints there: `vnet console LAB NODE --log`; a log belongs on its disk"
Warn = Callable[[str, str, str, bool], None]  # code, text, remedy, whether the run is suspect


class Consoles:
    """Checks the console logs of the machines in `guests`, the driver's own table, once a second; shortens a
    file beyond 64 MiB, and warns once per machine.
    """

    def __init__(self, loop: Loop, guests: Mapping[str, Guest], warn: Warn) -> None:
        self._guests, self._warn = guests, warn
        self._told: set[str] = set()
        self._timer = loop.every(PERIOD_NS, self.look)

    def look(self) -> None:
        """Shortens each console log that is longer than 64 MiB."""
        for guest in list(self._guests.values()):
            try:
                too_long = guest.console_log.stat().st_size > MOST_BYTES
            except FileNotFoundError:  # the machine has not started yet
                continue
            if too_long:
                self._shorten(guest)

    def close(self) -> None:
        self._timer.cancelled = True

    def _shorten(self, guest: Guest) -> None:
        try:
            shorten(guest.console_log)
            text = f"its console printed more than {MOST_BYTES >> 20} MiB; the middle of its log is removed"
        except OSError as error:
            text = f"its console's log is longer than {MOST_BYTES >> 20} MiB and stays so: {error}"
        if guest.name not in self._told:
            self._told.add(guest.name)
            self._warn("console", f"nodes.{guest.name}: {text}", REMEDY, False)


def shorten(log: Path) -> None:
    """Removes all but the first and the last MiB of a file, and writes the number of removed bytes between
    them. Bytes that are appended meanwhile may be lost.
    """
    descriptor = os.open(log, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as file:
        size = os.fstat(descriptor).st_size
        head = file.read(KEPT_BYTES)
        file.seek(size - KEPT_BYTES)
        tail = file.read()
        gone = size - len(head) - KEPT_BYTES
        file.truncate(0)
        file.write(head + f"\n[vNET removed {gone} bytes here]\n".encode() + tail)
