"""Processes of a lab that somebody stopped (SIGSTOP, a frozen debugger): whoever waits for them waits.

A look reads the state of every process of the kernel, so the more there are, the rarer it is.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab.clock import SECOND

STOPPED = "T"  # proc(5); a process that is traced has a small t
READS_PER_S = (
    200  # of /proc/PID/stat: 10 us each on a machine, 60 us in a guest, so about 1 % of a core there
)
Process = tuple[str, str, int]  # name, state, parent


class Halted:
    """Looks now and then at what descends from a process, the lab's own."""

    def __init__(self, root: int, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = root, proc
        self._next_ns = 0
        self.names: dict[str, None] = {}  # of all that were ever found stopped, in order

    def look(self, now_ns: int) -> int | None:
        """How many are stopped now; None where it is not time yet."""
        if now_ns < self._next_ns:
            return None
        there = dict(self._processes())
        self._next_ns = now_ns + max(SECOND // 2, len(there) * SECOND // READS_PER_S)
        stopped = [pid for pid, (_, state, _) in there.items() if state == STOPPED and self._ours(pid, there)]
        self.names |= {f"{there[pid][0]} ({pid})": None for pid in stopped}
        return len(stopped)

    def _processes(self) -> list[tuple[int, Process]]:
        found = []
        for entry in self._proc.iterdir():
            if entry.name.isdigit():
                try:
                    head, _, rest = (entry / "stat").read_text().rpartition(")")
                except OSError:  # it has just ended
                    continue
                fields = rest.split()
                found.append((int(entry.name), (head.partition("(")[2], fields[0], int(fields[1]))))
        return found

    def _ours(self, pid: int, there: dict[int, Process]) -> bool:
        seen = set[int]()
        while pid in there and pid not in seen:
            if pid == self._root:
                return True
            seen.add(pid)
            pid = there[pid][2]
        return False
