"""Finds processes of a lab that were stopped (SIGSTOP): their peers wait without an error.

Each heartbeat checks the next few processes, so that the checks themselves do not disturb the run.
"""

from __future__ import annotations

from pathlib import Path

STOPPED = "T"  # proc(5); a process that is traced has a small t
# Reads of /proc/PID/stat with each beat, 20 a second: 10 us each on a machine, 100 us in a guest.
EACH, EACH_IN_GUEST = 20, 3


class StoppedProcesses:
    """Looks at all processes of this kernel, and tells of those that descend from `root`, the lab's own."""

    def __init__(self, root: int, each: int, proc: Path = Path("/proc")) -> None:
        self._root, self._each, self._proc = root, each, proc
        self._left: list[int] = []
        self.names: dict[str, None] = {}  # of all that were ever found stopped, in order

    def look(self) -> int:
        """How many of the next few are stopped."""
        if not self._left:
            self._left = [int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit()]
        now, self._left = self._left[: self._each], self._left[self._each :]
        found = [(pid, name) for pid in now for name, state, _ in [self._read(pid)] if state == STOPPED]
        ours = [f"{name} ({pid})" for pid, name in found if self._ours(pid)]
        self.names |= dict.fromkeys(ours)
        return len(ours)

    def _read(self, pid: int) -> tuple[str, str, int]:
        """Name, state and parent; of one that has just ended, nothing."""
        try:
            head, _, rest = (self._proc / str(pid) / "stat").read_text().rpartition(")")
        except OSError:
            return "", "", 0
        fields = rest.split()
        return head.partition("(")[2], fields[0], int(fields[1])

    def _ours(self, pid: int) -> bool:
        while pid not in (0, self._root):
            pid = self._read(pid)[2]
        return pid == self._root
