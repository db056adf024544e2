"""Counts the bytes that light nodes read from disks and write to them, from /proc/PID/io of their processes
(proc(5)).

When a process ends, the kernel adds its counts to those of the process that waited for it (kernel/exit.c), so
the processes that exist at the end of the run have the counts of all. A kernel without the file
(CONFIG_TASK_IO_ACCOUNTING; the lab kernel is one) counts nothing, and no file is written. A file system in
memory (tmpfs) is no disk, and its writes are not counted, so each line states whether the node's own files
are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.lab import mounts
from orchestrator.lab.cgroup import text_of
from orchestrator.lab.lab import Lab

FILE = "disks.csv"  # in raw/; VM nodes have a file of their own (orchestrator/lab/vm/disks.py)
HEADER = "node,disk,read_bytes,written_bytes,reads,writes,memory\n"
# The value in the column of the disk's name for all disks, and all processes, of a light node.
OF_PROCESSES = "processes"
MAGIC = frozenset({0x01021994, 0x858458F6})  # f_type of tmpfs and ramfs (statfs(2))
OWN = "/tmp"  # a directory that is the node's own (images/agent/src/launch/sandbox/private.rs)


def write(lab: Lab, proc: Path = Path("/proc")) -> None:
    """Writes raw/disks.csv with a line for each light node whose processes can all be read. Writes nothing if
    the kernel does not count, and for labs on several hosts.
    """
    counts = (proc / "self" / "io").exists() and not lab.plan.hosts
    lines = list(_lines(lab, proc)) if counts else []
    if lines:
        (lab.run_dir / "raw" / FILE).write_text(HEADER + "".join(lines))


def _lines(lab: Lab, proc: Path) -> Iterator[str]:
    for node in lab.nodes.values():
        files = lab.driver.counters(node)["cpu"] if node.software and node.vm is None else []
        for file in files[:1]:
            pids = _pids(f"{file.rpartition('/')[0]}/cgroup.procs")
            found = [io_of(proc / pid / "io") for pid in pids]
            known = [one for one in found if one is not None]
            if not pids or len(known) < len(found):
                continue  # a sum without this process would look complete
            read, written = (sum(one[way] for one in known) for way in (0, 1))
            # the youngest process is a program of the node, inside the sandbox
            youngest = max(pids, key=int)
            yield f"{node.name},{OF_PROCESSES},{read},{written},,,{word(in_memory(proc / youngest))}\n"


def _pids(members: str) -> list[str]:
    try:
        return text_of(members).split()
    except OSError:
        return []  # the node does not exist any more


def io_of(file: Path) -> tuple[int, int] | None:
    """Returns the bytes that a process read from disks and wrote to them; (0, 0) for a process that has just
    ended, None if they may not be read.
    """
    try:
        fields = dict(line.split(": ") for line in text_of(file).splitlines())
        return int(fields["read_bytes"]), int(fields["write_bytes"])
    except PermissionError:
        return None
    except OSError:
        return 0, 0


def in_memory(process: Path) -> bool | None:
    """Returns whether a node's process writes its own files to a file system in memory; None if unknown.
    Looks at the file system of /tmp, on which the sandbox also puts the node's directory, /run and /var/tmp.
    """
    try:
        return mounts.file_system(f"{process}/root{OWN}") in MAGIC
    except OSError:
        return None


def word(known: bool | None) -> str:
    """Returns the text of a field of the column `memory`; empty if it is unknown."""
    return "" if known is None else str(int(known))
