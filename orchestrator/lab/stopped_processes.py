"""Finds processes of a lab that were stopped (SIGSTOP); their peers wait for them without an error.

Each call of `look` reads few processes, so that it does not disturb the lab. Up to half of these reads
determine which new processes are the lab's, the youngest first. The other reads are of the lab's own
processes: its programs (brokers, servers) first, since a short stop of one delays many, then the agents. Each
group is read in turn.
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
AGENT = "vnet-agent"  # the agent's name in every node; its senders' lateness shows that it was stopped


class StoppedProcesses:
    """Watches the processes of this kernel that descend from process `root`.

    each: number of processes that one look reads; every: heartbeats from one look to the next. `names` has
    all processes that were ever found stopped.
    """

    def __init__(self, root: int, each: int, every: int, proc: Path = Path("/proc")) -> None:
        self._root, self._each, self._every, self._proc = root, each, every, proc
        self._beats = 0
        self._youngest = ""  # the kernel's youngest pid at the last listing
        # pid -> descriptor of its stat file, which refers to this process even if the pid is reused
        self._files: dict[int, int] = {}
        self._new: list[int] = []
        self._others: set[int] = set()
        self._programs: deque[int] = deque()
        self._agents: deque[int] = deque()
        self.names: dict[str, None] = {}  # names of all processes ever found stopped, in order

    def look(self) -> int:
        """Reads the next few processes and returns how many of them are stopped; reads nothing and returns 0
        on heartbeats between looks. The caller calls it with each heartbeat.
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
        left = self._each - len(new)
        programs = _next(self._programs, left - 1)
        read = {pid: self._read(pid) for pid in programs + _next(self._agents, left - len(programs))}
        for pid in [pid for pid in self._agents if pid in read and read[pid][0] not in (AGENT, "")]:
            self._agents.remove(pid)  # the process is no agent any more: it has executed a program
            self._programs.append(pid)
        found = [f"{name} ({pid})" for pid, (name, state, _) in read.items() if state == STOPPED]
        self.names |= dict.fromkeys(found)
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
        self._programs = deque(pid for pid in self._programs if pid in there)
        self._agents = deque(pid for pid in self._agents if pid in there)
        self._others &= there
        for pid in self._files.keys() - there:
            self._close(pid)
        self._new = sorted(there - self._others - {*self._programs, *self._agents})

    def _last_pid(self) -> str:
        """Returns the youngest process's pid, the last field of loadavg (proc(5)); empty if unreadable."""
        try:
            return (self._proc / "loadavg").read_text().rpartition(" ")[2]
        except OSError:
            return ""

    def _sort(self, pid: int) -> None:
        """Assigns a new process to the lab's agents, to its programs, or to the others, which are not read
        again.
        """
        name, _, parent = self._read(pid)
        if not self._ours(parent):
            self._others.add(pid)
            self._close(pid)
        else:
            (self._agents if name == AGENT else self._programs).append(pid)

    def _read(self, pid: int) -> tuple[str, str, int]:
        """Returns name, state and parent of a process; empty values if it has ended."""
        try:
            head, _, rest = self._stat(pid).decode(errors="replace").rpartition(")")
            fields = rest.split()
            return head.partition("(")[2], fields[0], int(fields[1])
        except (OSError, ValueError, IndexError):
            self._close(pid)  # another process may reuse the pid
            return "", "", 0

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
            if pid in self._agents or pid in self._programs:
                return True
            if pid in self._others:
                return False
            parent = self._read(pid)[2]
            self._close(pid)
            pid = parent
        return pid == self._root


def _next(ring: deque[int], most: int) -> list[int]:
    """Returns the next few elements of a ring, each at most once, and turns the ring."""
    found = [ring[place] for place in range(min(most, len(ring)))]
    ring.rotate(-len(found))
    return found
