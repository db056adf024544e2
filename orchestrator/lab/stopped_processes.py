"""Finds processes of a lab that were stopped (SIGSTOP): their peers wait without an error.

A few are looked at with each beat, so that no look is felt. Up to half of the looks find out which processes
are the lab's, the youngest first; the others go to those that are: to its programs (brokers, servers) first,
since a short stop of one holds up many, then to all in turn.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

STOPPED = "T"  # proc(5); a process that is traced has a small t
# Reads of /proc/PID/stat with each beat, 20 a second: 10 us each on a machine, 100 us in a guest.
EACH, EACH_IN_GUEST = 20, 3
LISTED = 40  # beats from one list of all processes to the next: a list costs as much as 30 reads
AGENT = "vnet-agent"  # of each node; their senders show by themselves that they were stopped


class StoppedProcesses:
    """Looks at the processes of this kernel that descend from `root`, the lab's own."""

    def __init__(self, root: int, each: int, proc: Path = Path("/proc")) -> None:
        self._root, self._each, self._proc = root, each, proc
        self._beats = 0
        self._new: list[int] = []
        self._others: set[int] = set()
        self._programs: deque[int] = deque()
        self._agents: deque[int] = deque()
        self.names: dict[str, None] = {}  # of all that were ever found stopped, in order

    def look(self) -> int:
        """How many of the next few are stopped."""
        if self._beats % LISTED == 0:
            self._list()
        self._beats += 1
        new = [self._new.pop() for _ in range(min(self._each // 2, len(self._new)))]
        for pid in new:
            self._sort(pid)
        left = self._each - len(new)
        programs = _next(self._programs, left - 1)
        read = {pid: self._read(pid) for pid in programs + _next(self._agents, left - len(programs))}
        for pid in [pid for pid in self._agents if pid in read and read[pid][0] not in (AGENT, "")]:
            self._agents.remove(pid)  # it has become a program since (execve)
            self._programs.append(pid)
        found = [f"{name} ({pid})" for pid, (name, state, _) in read.items() if state == STOPPED]
        self.names |= dict.fromkeys(found)
        return len(found)

    def _list(self) -> None:
        """Those that came since, the youngest last; those that ended are forgotten."""
        there = {int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit()}
        self._programs = deque(pid for pid in self._programs if pid in there)
        self._agents = deque(pid for pid in self._agents if pid in there)
        self._others &= there
        self._new = sorted(there - self._others - {*self._programs, *self._agents})

    def _sort(self, pid: int) -> None:
        name = self._read(pid)[0]
        if not self._ours(pid):
            self._others.add(pid)
        else:
            (self._agents if name == AGENT else self._programs).append(pid)

    def _read(self, pid: int) -> tuple[str, str, int]:
        """Name, state and parent; of one that has just ended, nothing."""
        try:
            head, _, rest = (self._proc / str(pid) / "stat").read_text().rpartition(")")
            fields = rest.split()
            return head.partition("(")[2], fields[0], int(fields[1])
        except (OSError, ValueError, IndexError):
            return "", "", 0

    def _ours(self, pid: int) -> bool:
        while pid not in (0, self._root):
            pid = self._read(pid)[2]
        return pid == self._root


def _next(ring: deque[int], most: int) -> list[int]:
    """The next few of a ring, each once."""
    found = [ring[place] for place in range(min(most, len(ring)))]
    ring.rotate(-len(found))
    return found
