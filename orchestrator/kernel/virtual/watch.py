"""Watches a lab in virtual time by the wall clock: whether its clock still moves, and which process stops it.

A program that computes without end takes no virtual time. So the lab's clock stops, and nothing in the lab
can detect this. From outside, two signs are visible: the lab's files stop growing, and one program gets CPU
time while the lab's kernel gets none (spinning.py). Only then does the watchdog send SIGUSR2, and the kernel
prints the running process and the virtual time. A lab that writes is not disturbed.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.kernel.virtual.spinning import Spinning

ANSWER = re.compile(r"lab-runs: time=(\d+) idle=(\d) machine=(\S+) pid=(\d+) program=(.*)")
ANSWER_S = 2.0
EVERY_S = 1.0
TAIL_BYTES = 4096
# CPU time that one program may use without a pause: this share of stall_s, but at least 2 s.
SPIN, SPIN_LEAST_S = 1 / 20, 2.0
OUTSIDE = ("progress.jsonl", "owner.log", "console.log")  # files that the lab does not write


@dataclass(frozen=True, slots=True)
class Running:
    """The kernel's report: virtual time since boot (ns), and the running process with its node
    (`machine`).
    """

    time_ns: int
    idle: bool
    machine: str
    pid: int
    program: str

    def __str__(self) -> str:
        where = f"node {self.machine}" if self.machine != "-" else "the lab itself"
        return f"{where}: process {self.pid} ({self.program})"


class Watchdog:
    """Watches the files of a run directory, and queries the kernel (process `pid`) if they do not grow.

    stall_s: seconds without progress after which the lab must end at the latest; a program that has only
    computed for the share SPIN of this time also ends the lab. until_ns: latest lab time that is allowed.
    """

    def __init__(
        self,
        pid: int,
        raw: Path,
        stall_s: float,
        until_ns: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pid = pid
        self._raw = raw
        self._stall_s = stall_s
        self._until_ns = until_ns
        self._next = clock()
        self._clock = clock
        self._seen = self._written()
        self._since = clock()
        self._asked: Running | None = None
        self._spinning = Spinning(pid, max(stall_s * SPIN, SPIN_LEAST_S))

    def look(self) -> str | None:
        """Returns why the guest must be ended: the lab time of its last sample is beyond `until_ns`, a
        program computes without end, or the clock has stood still for `stall_s`. Returns None otherwise, and
        if less than EVERY_S has passed since the last look.
        """
        now = self._clock()
        if now < self._next:
            return None
        self._next = now + EVERY_S
        if (at := self._lab_time()) > self._until_ns:
            return _sleeps(at - self._until_ns)
        if (computed := self._spinning.look()) is not None:
            return _stands(self._ask(), f"{computed:.0f} s of CPU time")
        if (written := self._written()) != self._seen:
            self._seen, self._since, self._asked = written, now, None
            return None
        stood = now - self._since
        if stood < self._stall_s / 2 or (self._asked is not None and stood < self._stall_s):
            return None
        return self._judged(now, stood)

    def _judged(self, now: float, stood: float) -> str | None:
        """Queries the kernel and compares its virtual time with the report half of `stall_s` before; returns
        why the guest must be ended, or None.

        A kernel that does not answer, perhaps because others use its core, gets twice the time.
        """
        first, answer = self._asked, self._ask()
        if answer is None:
            return _stands(None, f"{stood:.0f} s of wall-clock time") if stood >= 2 * self._stall_s else None
        if first is None:
            self._asked = answer
            if stood >= self._stall_s:
                self._since = now - self._stall_s / 2
            return None
        if answer.time_ns > first.time_ns:
            self._since, self._asked = now, None  # the lab is slow, but its clock moves
            return None
        return _stands(answer, f"{stood:.0f} s of wall-clock time")

    def _written(self) -> int:
        run_dir = self._raw.parent
        files = [*self._raw.glob("*"), *run_dir.glob("pcap/*")]
        return sum(_size(file) for file in files if file.name not in OUTSIDE)

    def _lab_time(self) -> int:
        """Returns the lab time (Unix ns) of the latest sample of nodes; 0 if there is none yet."""
        path = self._raw / "nodes.csv"
        if not path.exists():
            return 0
        with path.open("rb") as samples:
            samples.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = samples.read().split(b"\n")[1:-1]  # the first and the last may be incomplete
        times = [int(line.split(b",")[0]) for line in lines if line[:1].isdigit()]
        return max(times, default=0)

    def _ask(self) -> Running | None:
        console = self._raw / "console.log"
        before = console.stat().st_size
        os.kill(self._pid, signal.SIGUSR2)
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            found = ANSWER.search(console.read_bytes()[before:].decode(errors="replace"))
            if found:
                at, idle, machine, pid, program = found.groups()
                return Running(int(at), idle == "1", machine, int(pid), program)
            time.sleep(0.05)
        return None


def _size(path: Path) -> int:
    """Returns the bytes of a file; 0 if the lab has removed it since it was listed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sleeps(beyond_ns: int) -> str:
    return (
        f"the lab sleeps: its clock is {beyond_ns / 1e9:.0f} s beyond the latest end of the scenario, and it "
        "waits on; raw/lab.log and raw/guest.jsonl say for what"
    )


def _stands(running: Running | None, stood: str) -> str:
    if running is None:
        return f"nothing was written for {stood} and the guest's kernel does not answer"
    at = running.time_ns / 1e9
    if running.idle:
        return f"virtual time stands at {at:.3f} s of the lab for {stood} though no process runs"
    return (
        f"virtual time stands still at {at:.3f} s since the boot for {stood}: "
        f"{running} computes without end; computing is free in virtual time, so the clock "
        "does not advance meanwhile; let the program wait now and then, or use --time real"
    )
