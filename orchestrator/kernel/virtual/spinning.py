"""Finds a program of a lab in virtual time that computes without end, by the CPU time of the processes.

Each program of the guest is a process of the machine (a stub), and so is the guest's kernel. As long as a
program only computes, the kernel gets no CPU time at all, since no system call, page fault or timer of the
lab reaches it; one stub gets all CPU time. CPU time is compared, not wall-clock time: on a busy machine a
program gets as much time to finish its computation as on an idle one.
"""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
AWAKE_TICKS = 2  # CPU time (ticks) up to which a kernel counts as idle, because the check itself takes some


class Spinning:
    """Compares the CPU time of the guest's kernel (process `pid`, which leads its session) and of its
    programs between calls.

    most_s: seconds of CPU time that one program may compute without a call of the kernel.
    """

    def __init__(self, pid: int, most_s: float) -> None:
        self._pid = pid
        self._most_s = most_s
        self._kernel: int | None = None
        self._programs: dict[int, int] = {}

    def look(self) -> float | None:
        """Returns the seconds of CPU time that a program has computed since the kernel last ran, if they are
        more than allowed; else None.
        """
        kernel = _ticks(self._pid)
        if kernel is None or self._kernel is None or kernel - self._kernel > AWAKE_TICKS:
            self._kernel = kernel
            self._programs = self._others()
            return None
        most = max((now - self._programs.get(pid, now) for pid, now in self._others().items()), default=0)
        return most / TICKS if most > self._most_s * TICKS else None

    def _others(self) -> dict[int, int]:
        """Maps the other processes of the kernel's session to their CPU time in ticks."""
        numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        found = ((pid, _ticks(pid, self._pid)) for pid in numbers if pid != self._pid)
        return {pid: ticks for pid, ticks in found if ticks is not None}


def _ticks(pid: int, session: int | None = None) -> int | None:
    """Returns the CPU time of a process in ticks; None if it has ended or belongs to another session."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if session is not None and int(fields[3]) != session:
        return None
    return int(fields[11]) + int(fields[12])
