"""Finds processes of a lab that were stopped (SIGSTOP); their peers wait for them without an error.

The launcher reports the nodes' agents and its own helpers, since it is their parent. All other processes of
the lab are found by reading their states. Each call of `look` reads few processes, so that it does not
disturb the lab: up to half of these reads determine which new processes are the lab's, the youngest first;
the others read the lab's processes (brokers, servers, captures) in turn.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

STOPPED = "T"  # state in proc(5); a traced process has a small t
# Reads of /proc/PID/stat at each look, and heartbeats (20 a second) from one look to the next. In a guest,
# system calls cost ten times as much.
EACH, EVERY = 20, 1
EACH_IN_GUEST, EVERY_IN_GUEST = 6, 2
KEPT = 512  # most files that stay open, so that a repeated read takes one system call, not seven
LENGTH = 512  # bytes read of a stat file: name, state and parent come first
LISTED = 40  # heartbeats from one listing of all processes to the next; a listing costs as much as 30 reads
LAUNCHER = "vnet-agent"  # the program that is the launcher; so are its children, the nodes' agents


class StoppedChildren:
    """Keeps the launcher's children that are stopped, by its events. Two threads may use it."""

    def __init__(self) -> None:
        self._now: set[str] = set()
        self._since: set[str] = set()  # those that were stopped at any time since the last `taken`

    def stopped(self, name: str) -> None:
        self._now.add(name)
        self._since.add(name)

    def continued(self, name: str) -> None:
        """Also for a child that has ended."""
        self._now.discard(name)

    def taken(self) -> set[str]:
        """Returns the names of the children that were stopped at any time since the last call."""
        since, self._since = self._since, set(self._now)
        return since


class StoppedProcesses:
    """Watches the processes of this kernel that descend from process `root`.

    each: processes that one look reads; every: heartbeats from one look to the next; children: what the
    launcher reports. `names` has all processes ever found stopped.
    """

    def __init__(
        self, root: int, each: int, every: int, children: StoppedChildren, proc: Path = Path("/proc")
    ) -> None:
        self._root, self._each, self._every, self._proc = root, each, every, proc
        self._children = children
        self._beats = 0
        self._youngest = ""  # the kernel's youngest pid at the last listing
        # pid -> descriptor of its stat file, which refers to this process even if the pid is reused
        self._files: dict[int, int] = {}
        self._new: list[int] = []
        self._others: set[int] = set()
        self._launchers: set[int] = set()
        self._reported: set[int] = set()  # the launcher's children
        self._lab: deque[int] = deque()  # the lab's other processes, which are read in turn
        self.names: dict[str, None] = {}  # names of all processes ever found stopped, in order

    def look(self) -> int:
        """Reads the next few processes and returns how many of the lab's processes are stopped or were
        stopped since the last look; reads nothing and returns 0 on heartbeats between looks. The caller
        calls it with each heartbeat.
        """
        beat = self._beats
        self._beats += 1
        if beat % self._every:
            return 0
        if beat % LISTED == 0:
            self._list()
        new = [self._new.pop() for _ in range(min(self._each // 2, len(self._new)))]
        for pid in new:
            self._sort(pid)
        found = self._children.taken()
        for pid in _next(self._lab, self._each - len(new)):
            name, state = self._state(pid)
            if state == STOPPED:
                found.add(f"{name} ({pid})")
        self.names |= dict.fromkeys(sorted(found))
        return len(found)

    def _list(self) -> None:
        """Finds the new processes, the youngest last, and removes those that have ended.

        Does nothing if no process began since the last list; reads of ended ones then fail.
        """
        youngest = self._last_pid()
        if youngest and youngest == self._youngest:
            return
        self._youngest = youngest
        there = {int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit()}
        self._lab = deque(pid for pid in self._lab if pid in there)
        for known in (self._others, self._launchers, self._reported):
            known &= there
        for pid in self._files.keys() - there:
            self._close(pid)
        self._new = sorted(there - self._others - self._reported - {*self._lab})

    def _last_pid(self) -> str:
        """Returns the youngest process's pid, the last field of loadavg (proc(5)); empty if unreadable."""
        try:
            return (self._proc / "loadavg").read_text().rpartition(" ")[2]
        except OSError:
            return ""

    def _sort(self, pid: int) -> None:
        """Assigns a new process to the lab's processes, to the launcher's children or to the others; neither
        of the latter two is read again.
        """
        parent = self._read(pid)[1]
        if self._is_launcher(parent):
            self._reported.add(pid)
        elif self._ours(parent):
            self._lab.append(pid)
            return
        else:
            self._others.add(pid)
        self._close(pid)

    def _is_launcher(self, pid: int) -> bool:
        """Returns whether a process is a launcher of this lab, a child of `root`."""
        if pid not in self._launchers and pid not in self._others and pid not in self._lab:
            name, parent = self._read(pid)
            self._close(pid)
            if name == LAUNCHER and parent == self._root:
                self._launchers.add(pid)
        return pid in self._launchers

    def _read(self, pid: int) -> tuple[str, int]:
        """Returns name and parent of a process; empty values if it has ended."""
        try:
            head, _, rest = self._stat(pid).decode(errors="replace").rpartition(")")
            return head.partition("(")[2], int(rest.split(None, 2)[1])
        except (OSError, ValueError, IndexError):
            self._close(pid)  # another process may reuse the pid
            return "", 0

    def _state(self, pid: int) -> tuple[str, str]:
        """Returns name and state of a process; empty values if it has ended."""
        try:
            head, _, rest = self._stat(pid).rpartition(b")")
            return head.partition(b"(")[2].decode(errors="replace"), chr(rest[1])
        except (OSError, IndexError):
            self._close(pid)
            return "", ""

    def _stat(self, pid: int) -> bytes:
        if pid in self._files:
            return os.pread(self._files[pid], LENGTH, 0)
        file = os.open(self._proc / str(pid) / "stat", os.O_RDONLY)
        if len(self._files) < KEPT:
            self._files[pid] = file
            return os.pread(file, LENGTH, 0)
        try:
            return os.read(file, LENGTH)
        finally:
            os.close(file)

    def _close(self, pid: int) -> None:
        if pid in self._files:
            os.close(self._files.pop(pid))

    def _ours(self, pid: int) -> bool:
        """Returns whether a process is `root` or descends from it."""
        while pid not in (0, self._root):
            if pid in self._lab or pid in self._reported:
                return True
            if pid in self._others:
                return False
            parent = self._read(pid)[1]
            self._close(pid)
            pid = parent
        return pid == self._root


def _next(ring: deque[int], most: int) -> list[int]:
    """Returns the next few elements of a ring, each at most once, and turns the ring."""
    found = [ring[place] for place in range(min(most, len(ring)))]
    ring.rotate(-len(found))
    return found
