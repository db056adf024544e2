"""Runs a thread beside a lab that records disturbances of the lab: late heartbeats, CPU contention, stopped
processes.

The thread writes one line a second. It runs only in real time, because virtual time stands still while the
machine does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.lab import cgroup, cpu_contention
from orchestrator.lab.clock import MILLISECOND, SECOND, wall_offset_ns
from orchestrator.lab.errors import LabError
from orchestrator.lab.lab import Lab
from orchestrator.lab.stopped_processes import (
    EACH,
    EACH_IN_GUEST,
    EVERY,
    EVERY_IN_GUEST,
    StoppedProcesses,
)

BEAT_NS = 50 * MILLISECOND
MOST_NODES = 16  # largest number of nodes whose agents' waiting time is read
# a shorter delay counts only towards the mean: timers and the time slices of other programs cause it
STALL_NS = 50 * MILLISECOND
BEATS = ("t_ns", "beats", "late_ns", "worst_ns", "stalled_ns", "suspended_ns", "set_ns")
TAKEN = (
    "periods", "throttled", "throttled_ns", "ran_ns", "waited_ns", "slices", "pressure_ns", "cores",
    "cores_ns", "idle_ns", "steal_ns", "own_core_ns", "own_steal_ns", "heat_ns",
)  # fmt: skip
STOPPED = "stopped"
# The files in raw/ that the lab process and the process that owns the lab's kernel write.
INSIDE, OUTER = "disturbance.csv", "disturbance.outer.csv"
Columns = dict[str, int]


class Heart:
    """Adds up the heartbeats of one second: their number and lateness."""

    def __init__(self) -> None:
        self._suspended, self._set = _suspended_ns(), wall_offset_ns()
        self.clear()

    def clear(self) -> None:
        self.beats = self.late_ns = self.worst_ns = self.stalled_ns = 0

    def beat(self, late_ns: int) -> None:
        self.beats += 1
        self.late_ns += late_ns
        self.worst_ns = max(self.worst_ns, late_ns)
        self.stalled_ns += late_ns if late_ns >= STALL_NS else 0

    def line(self, t_ns: int) -> list[int]:
        """Returns the fields BEATS. The last two fields are totals since the start: the time for which the
        machine was suspended, and the amount by which its time of day was set.
        """
        beats = [t_ns, self.beats, self.late_ns, self.worst_ns, self.stalled_ns]
        return [*beats, _suspended_ns() - self._suspended, wall_offset_ns() - self._set]


class Counters:
    """Reads the fields TAKEN of the processes that carry a lab. groups: control groups above
    these processes.
    """

    def __init__(self, pids: Callable[[], list[int]], groups: Iterable[Path] = ()) -> None:
        more = list(groups)
        self._pids = pids
        self._throttling = cpu_contention.Throttling(lambda: dict.fromkeys([*cpu_contention.chain(), *more]))
        self._waiting = cpu_contention.Waiting(pids)
        self._own = [0, 0]
        self._before: dict[int, tuple[int, int, int]] = {}
        self.unmade: dict[str, str] = {}

    def read(self) -> Columns:
        """Returns the counters that can be read; adds the reason for every other counter to `unmade`."""
        found: Columns = {}
        for check, look in (
            ("throttling", self._throttled), ("run queue", self._waited),
            ("pressure", lambda: {"pressure_ns": cpu_contention.pressure()}), ("cores", self._cores),
            ("heat", lambda: {"heat_ns": cpu_contention.heat(self._allowed())}),
        ):  # fmt: skip
            try:
                found |= look()
            except (cpu_contention.NoCounterError, OSError, ValueError, LookupError) as why:
                self.unmade.setdefault(check, str(why) or repr(why))  # the other counters are still read
        return found

    def _throttled(self) -> Columns:
        return dict(zip(TAKEN[:3], self._throttling.read(), strict=True))

    def _waited(self) -> Columns:
        return dict(zip(TAKEN[3:6], self._waiting.read(), strict=True))

    def _allowed(self) -> set[int]:
        return set[int]().union(*map(cpu_contention.cores_of, self._pids()))

    def _cores(self) -> Columns:
        times, pids = cpu_contention.core_times(), self._pids()
        may = [times[core] for core in self._allowed() if core in times]
        total, idle, steal = (sum(column) for column in zip(*may, strict=True)) if may else (0, 0, 0)
        own = cpu_contention.last_core(pids[0])
        if own in times and own in self._before:
            now, then = times[own], self._before[own]
            self._own = [self._own[0] + now[0] - then[0], self._own[1] + now[2] - then[2]]
        self._before = times
        return {
            "cores": len(may), "cores_ns": total, "idle_ns": idle, "steal_ns": steal,
            "own_core_ns": self._own[0], "own_steal_ns": self._own[1],
        }  # fmt: skip


class Heartbeat:
    """Writes `path` (CSV, fields BEATS, TAKEN and STOPPED) until it is stopped. Without `counters`, the
    fields TAKEN are empty; without `stopped`, the field STOPPED is empty. At its end, it writes a JSON file
    of the same name with unreadable counters and stopped processes, if there are any.
    """

    def __init__(
        self,
        path: Path,
        offset_ns: int,
        counters: Counters | None = None,
        stopped: StoppedProcesses | None = None,
    ) -> None:
        self._path, self._offset_ns, self._counters, self._stopped = path, offset_ns, counters, stopped
        self._most_stopped = -1  # number of stopped processes in the present second; -1: not yet counted
        self._over, self._due_ns = False, 0
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        # if the thread starts late, this counts as a late heartbeat, too
        self._due_ns = time.monotonic_ns() + BEAT_NS
        try:
            self._thread.start()
        except RuntimeError as error:
            raise LabError(f"no thread beside the lab: {error}; raise the limit of processes") from error

    def stop(self) -> None:
        """Ends the thread after it writes the line of the current second."""
        self._over = True
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with self._path.open("w", buffering=1, encoding="utf-8") as file:
                file.write(",".join((*BEATS, *TAKEN, STOPPED)) + "\n")
                self._beat(file.write)
            if said := self._said():
                self._path.with_suffix(".json").write_text(json.dumps(said) + "\n")
        except OSError:  # a full disk ends the run by itself, and the reduction reports the missing lines
            return

    def _said(self) -> dict[str, str]:
        """Returns the reason for each counter that could not be read, and the names of the processes that
        were stopped.
        """
        said = dict(self._counters.unmade) if self._counters is not None else {}
        return said | (
            {STOPPED: ", ".join(self._stopped.names)} if self._stopped and self._stopped.names else {}
        )

    def _beat(self, write: Callable[[str], object]) -> None:
        heart, written = Heart(), 0
        due, over = self._due_ns, False
        # The loop runs at least once, so that a thread that starts while the process is stopped is late, too.
        while not over:
            time.sleep(max(0, due - time.monotonic_ns()) / SECOND)
            now, over = time.monotonic_ns(), self._over
            heart.beat(max(0, now - due))
            due += BEAT_NS * (1 + max(0, now - due) // BEAT_NS)
            if self._stopped is not None:
                self._most_stopped = max(self._most_stopped, self._stopped.look())
            if now - written >= SECOND or over:
                written = now
                self._write(write, heart, now)

    def _write(self, write: Callable[[str], object], heart: Heart, now: int) -> None:
        counters = self._counters.read() if self._counters is not None else {}
        fields = [*heart.line(self._offset_ns + now), *(counters.get(name, "") for name in TAKEN)]
        fields.append(self._most_stopped if self._most_stopped >= 0 else "")
        write(",".join(map(str, fields)) + "\n")
        self._most_stopped = -1
        heart.clear()


def _suspended_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


def of_process(pid: int) -> Callable[[], list[int]]:
    """Returns a function that lists two pids: `pid` and the caller's own."""
    return lambda: [pid, os.getpid()]


def beside(lab: Lab) -> Heartbeat | None:
    """Returns the heartbeat thread of a lab process; None in virtual time and for the fake driver.

    In a User-Mode Linux guest the thread reads no counters, since they are not the machine's.
    """
    if lab.time != "real" or lab.driver.name == "fake":
        return None
    counters, looks = None, (EACH_IN_GUEST, EVERY_IN_GUEST)
    if lab.manifest.kernel.get("kind") != "uml":
        looks = (EACH, EVERY)
        counters = Counters(lambda: [os.getpid(), *_unlimited(lab)], cgroup.above(lab.plan.lab))
    return Heartbeat(
        lab.run_dir / "raw" / INSIDE,
        lab.loop.clock.offset_ns,
        counters,
        StoppedProcesses(os.getpid(), *looks, lab.stopped),
    )


def _unlimited(lab: Lab) -> list[int]:
    """Returns the pids of at most MOST_NODES agents of nodes on this host without a CPU limit, spread evenly
    over the lab.
    """
    free = [
        lab.pids[n.name] for n in lab.nodes.values()
        if n.name in lab.pids and not n.host and n.cpu_limit_mhz is None and n.cpu_limit_cores is None
    ]  # fmt: skip
    return free[:: 1 + len(free) // MOST_NODES]
