"""Sends signals to recorded processes of a lab, and finds processes that a dead User-Mode Linux
kernel left.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from orchestrator.lab.state import Owned


def send(process: Owned, number: signal.Signals) -> bool:
    """Sends a signal if the pid still belongs to the same process; returns whether it did."""
    if not process.alive:
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def end(processes: Sequence[Owned], timeout_s: float = 5.0) -> list[Owned]:
    """Sends SIGKILL to the processes that still run; returns those that still run after `timeout_s`."""
    for process in processes:
        send(process, signal.SIGKILL)
    deadline = time.monotonic() + timeout_s
    while (left := [p for p in processes if p.alive]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def session_members(session: int, binary: str) -> list[Owned]:
    """Returns the processes of one session that execute the file `binary`, except ended ones (zombies).

    Linux does not reuse a process number while a session of that number has members. So session and file
    together show that a process belongs to the kernel that was started as leader of the session.
    """
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [member for pid in numbers if (member := _member(pid, session, binary)) is not None]


def _member(pid: int, session: int, binary: str) -> Owned | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if int(fields[3]) != session or fields[0] in "ZX":
            return None
        target = str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:  # the process ended meanwhile, or is another user's
        return None
    ours = target.removesuffix(" (deleted)") == binary
    return Owned("uml-thread", pid, int(fields[19])) if ours else None
