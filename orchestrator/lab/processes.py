"""Records the CPU time of nodes with software at a run's end in two ways: from the control groups, whose
counters are sampled, and from their processes in /proc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from contract import regular
from orchestrator.lab.cgroup import text_of
from orchestrator.lab.lab import Lab

FILE = "cpu.csv"  # in raw/
HEADER = "t_ns,node,group_ns,processes_ns\n"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# The fields utime, stime, cutime and cstime of /proc/PID/stat (proc(5)), counted from the field `state`.
TIMES = slice(11, 15)
V2 = "usage_usec"


def write(lab: Lab) -> None:
    """Writes raw/cpu.csv; writes nothing if no node with software has a control group here (other hosts,
    virtual machines).
    """
    lines = list(_lines(lab))
    if lines:
        path = lab.run_dir / "raw" / FILE
        with regular.named(path):
            path.write_text(HEADER + "".join(lines))


def _lines(lab: Lab) -> Iterator[str]:
    """Yields lines for nodes with software, since these have their own control groups from the start; yields
    none in multi-host labs.
    """
    for node in lab.nodes.values() if not lab.plan.hosts else ():
        for file in lab.driver.counters(node)["cpu"] if node.software else ():
            processes_ns = of_processes(
                f"{file.rpartition('/')[0]}/cgroup.procs"
            )  # the group is read first, so its value can only be smaller
            if processes_ns is not None and (group_ns := of_group(file)) is not None:
                yield f"{lab.loop.clock.now_ns()},{node.name},{group_ns},{processes_ns}\n"


def of_processes(members: Path | str, proc: Path | str = "/proc") -> int | None:
    """Returns the user and system time (ns) of a group's processes and of their ended children, in whole
    ticks, rounded down. A process that has just ended adds nothing. None if the group cannot be read.
    """
    try:
        pids = text_of(members).split()
    except OSError:
        return None
    return TICK_NS * sum(sum(_times(f"{proc}/{pid}/stat")) for pid in pids)


def _times(stat: str) -> list[int]:
    """Returns the user and system times of a process and its ended children in ticks; empty if it has just
    ended.
    """
    try:
        return [int(ticks) for ticks in text_of(stat).rpartition(")")[2].split()[TIMES]]
    except (OSError, ValueError):
        return []


def of_group(file: Path | str) -> int | None:
    """Returns the CPU time of a group in ns, from cpuacct.usage (version 1) or cpu.stat (version 2); None if
    the file cannot be read or parsed.
    """
    try:
        words = text_of(file).split()
        return int(words[words.index(V2) + 1]) * 1000 if V2 in words else int(words[0])
    except (OSError, ValueError, IndexError):
        return None
