"""Reads the kernel's counters of CPU time that the lab's processes did not get: control-group quotas, other
programs that ran first, cooling, a hypervisor's steal. A machine may lack any of these counters.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path

PROC, SYSTEM = Path("/proc"), Path("/sys/devices/system/cpu")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
IDLE, IOWAIT, STEAL = 3, 4, 7  # indices of these times in a line of /proc/stat
LAST_CORE = 36  # index of field 39 of /proc/PID/stat, counted from the process state
MICROSECOND = 1000
Times = tuple[int, int, int]  # three counters that are read at the same time


class NoCounterError(Exception):
    """A counter that cannot be read on this machine; the text names the counter and the reason."""


def chain(proc: Path = PROC, pid: str = "self") -> list[Path]:
    """Returns the control groups that can limit the CPU of a process: its own and those above, in each tree.
    Raises NoCounterError if there are none.
    """
    try:
        return list(_above_all((proc / pid / "cgroup").read_text(), proc))
    except OSError as error:
        raise NoCounterError(f"{error.filename}: {error.strerror}") from error


@functools.lru_cache(maxsize=8)
def _above_all(groups: str, proc: Path) -> tuple[Path, ...]:
    """Returns the control groups of `chain` for the text of a process's file `cgroup`. The mounts are read
    once for each text, since a process that moves to another group changes the text.
    """
    mounts = [line.split() for line in (proc / "self" / "mountinfo").read_text().splitlines()]
    found: list[Path] = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        for words in mounts:
            if _carries(words, controllers):
                found += _above(Path(words[4]), path, words[3])
    if not found:
        raise NoCounterError("no control group of this process has a CPU controller")
    return tuple(dict.fromkeys(found))


def _carries(words: list[str], controllers: str) -> bool:
    """Returns whether a line of mountinfo describes the tree of these controllers; an empty name means
    version 2.
    """
    kind, options = words[words.index("-") + 1], words[-1].split(",")
    return (
        kind == "cgroup2"
        if not controllers
        else kind == "cgroup" and "cpu" in controllers.split(",") and "cpu" in options
    )


def _above(mount: Path, path: str, root: str) -> list[Path]:
    """Returns a group and those above it, up to the mount. In a container the mount may begin below the root
    of the tree.
    """
    inner = path.removeprefix(root) if root != "/" else path
    group = mount / inner.strip("/")
    group = group if group.is_dir() else mount
    return [g for g in (group, *group.parents) if g.is_relative_to(mount)]


class Throttling:
    """Measures the CPU time that quotas of control groups withheld from a process, which may move between
    groups.
    """

    def __init__(self, groups: Callable[[], Iterable[Path]]) -> None:
        self._groups = groups
        self._before: dict[Path, Times] = {}
        self._total: Times = (0, 0, 0)

    def read(self) -> Times:
        """Returns sums over all groups since the first read: periods of quotas, throttled periods, and ns of
        throttled time. Raises NoCounterError if no group counts them.
        """
        now: dict[Path, Times] = {}
        why = "no control group"
        for group in self._groups():
            try:
                now[group] = _throttled(group)
            except (OSError, ValueError) as error:
                why = f"{group}/cpu.stat: {getattr(error, 'strerror', None) or error}"
        if not now:
            raise NoCounterError(why)
        for group, times in now.items():
            self._total = _plus(self._total, _minus(times, self._before.get(group, times)))
        self._before |= now
        return self._total


def _throttled(group: Path) -> Times:
    values = dict(line.split()[:2] for line in (group / "cpu.stat").read_text().splitlines())
    taken_ns = int(values.get("throttled_time", int(values.get("throttled_usec", 0)) * MICROSECOND))
    return int(values.get("nr_periods", 0)), int(values.get("nr_throttled", 0)), taken_ns


class Waiting:
    """Measures how long runnable processes waited for a core. In each interval only the process that waited
    longest counts, since short waits of the lab's processes for each other are no disturbance.
    """

    def __init__(self, pids: Callable[[], Iterable[int]], proc: Path = PROC) -> None:
        self._pids, self._proc = pids, proc
        self._before: dict[int, Times] = {}
        self._total: Times = (0, 0, 0)

    def read(self) -> Times:
        """Returns ns of running, ns of waiting, and time slices since the first read; raises NoCounterError
        if no process has these counters.
        """
        now = {pid: times for pid in self._pids() if (times := self._times(pid)) is not None}
        if not now:
            raise NoCounterError("no process of the lab has a schedstat (CONFIG_SCHED_INFO)")
        steps = [_minus(times, self._before[pid]) for pid, times in now.items() if pid in self._before]
        longest = max(steps, key=lambda step: step[1], default=(0, 0, 0))
        self._total = _plus(self._total, longest)
        self._before = now
        return self._total

    def _times(self, pid: int) -> Times | None:
        """Returns the counters of the process's first thread; None if it has ended or the kernel does not
        count.
        """
        try:
            ran, waited, slices = map(int, (self._proc / str(pid) / "schedstat").read_text().split())
        except (OSError, ValueError):
            return None
        # The kernel has the file but does not count: it then shows three zeros (proc_pid_schedstat in
        # fs/proc/base.c).
        return (ran, waited, slices) if ran or waited or slices else None


def _plus(one: Times, other: Times) -> Times:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _minus(now: Times, before: Times) -> Times:
    return now[0] - before[0], now[1] - before[1], now[2] - before[2]


def pressure(proc: Path = PROC) -> int:
    """Returns the ns in which at least one process of the machine waited for a core (PSI); raises
    NoCounterError without PSI.
    """
    try:
        some = (proc / "pressure" / "cpu").read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) * MICROSECOND
    except (OSError, ValueError, IndexError) as error:
        raise NoCounterError(f"{proc}/pressure/cpu: {getattr(error, 'strerror', None) or error}") from error


def cores_of(pid: int) -> set[int]:
    """Returns the cores that a process may run on, by cpusets and by its affinity; raises NoCounterError if
    there is no such process.
    """
    try:
        return os.sched_getaffinity(pid)
    except OSError as error:
        raise NoCounterError(f"process {pid} does not tell its cores: {error.strerror}") from error


def last_core(pid: int, proc: Path = PROC) -> int | None:
    """Returns the core that a process ran on last; None if it has ended."""
    try:
        return int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[LAST_CORE])
    except (OSError, ValueError, IndexError):
        return None


def heat(cores: Iterable[int], system: Path = SYSTEM) -> int:
    """Returns the ns in which the hottest of these cores ran slower to cool down. Raises NoCounterError if
    none of them counts this, as in a virtual machine.
    """
    told = []
    for core in cores:
        try:
            text = (system / f"cpu{core}/thermal_throttle/core_throttle_total_time_ms").read_text()
            told.append(int(text) * MICROSECOND * MICROSECOND)
        except (OSError, ValueError):
            continue
    if not told:
        raise NoCounterError("this machine does not count thermal throttling")
    return max(told)


def core_times(proc: Path = PROC) -> dict[int, Times]:
    """Returns total, idle and stolen ns of each core by its number. Raises NoCounterError if /proc/stat
    cannot be read.
    """
    try:
        lines = [line.split() for line in (proc / "stat").read_text().splitlines()]
    except OSError as error:
        raise NoCounterError(f"{proc}/stat: {error.strerror}") from error
    found = {}
    for name, *fields in (line for line in lines if line and line[0].startswith("cpu") and line[0] != "cpu"):
        times = [int(value) * TICK_NS for value in fields[:8]]
        found[int(name[3:])] = (sum(times), times[IDLE] + times[IOWAIT], times[STEAL])
    return found
