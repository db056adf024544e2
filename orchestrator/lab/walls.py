"""Contained nodes: what a light node's programs see of the machine, and how much of it they may take.

The walls themselves are the launcher's (docs/decisions/contained-nodes.md); the bounds are control groups'.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.lab.cgroup import Groups
from orchestrator.lab.errors import LabError
from orchestrator.lab.operations import Opened, Walls
from orchestrator.model import Node

DISK_BYTES = 512 << 20  # of a node: its directory, /tmp, /run, /var/tmp, /dev/shm together
DISK_SHARE = 4  # at most a quarter of the machine's memory: it is kept there
PROCESSES = 1024  # of a node, threads counted
NODE_SHARE = 2  # a node may take half of the machine's memory,
LAB_SHARE = 0.75  # all together three quarters of its memory and processes
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys")  # seen by every node
_PATH = re.compile(r"/[^\s'\"`;|&<>()$=:,\\]+")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a node may take where the file does not say otherwise, and all nodes of a lab together."""

    memory_bytes: int
    disk_bytes: int
    processes: int
    lab_memory_bytes: int
    lab_processes: int


def bounds(memory_bytes: int, processes: int) -> Bounds:
    """For a machine with so much memory that can run so many processes."""
    return Bounds(
        memory_bytes // NODE_SHARE,
        min(DISK_BYTES, memory_bytes // DISK_SHARE),
        PROCESSES,
        int(memory_bytes * LAB_SHARE),
        int(processes * LAB_SHARE),
    )


def of_this_machine() -> Bounds:
    """From /proc: under `uml` the guest's own."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = next(int(field[1]) * 1024 for field in fields if field[0] == "MemTotal:")
    most = [int(Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("pid_max", "threads-max")]
    return bounds(memory, min(most))


def walls(state_root: Path, run_dir: Path, replaces: dict[str, str], disk_bytes: int) -> Walls:
    """What the launcher needs to build them: no node sees labs' state or this run's results."""
    return {
        "hides": [str(state_root), str(run_dir)],
        "replaces": replaces,
        "logs": str(run_dir / "raw" / "logs"),
        "disk_bytes": disk_bytes,
    }


def opened(node: Node) -> Opened:
    """What the file opens for a node, and the files that its commands name."""
    if node.image:
        if not node.image_root:
            raise LabError(
                f"node {node.name}: its image {node.image} is not unpacked; start the lab anew with it"
            )
        return {"sees": [], "writes": [], "names": [], "root": node.image_root}
    return {
        "sees": list(node.mounts_read),
        "writes": list(node.mounts_write),
        "names": sorted(set(_named(node))),
    }


def paths_of(node: Node) -> Iterator[tuple[str, str]]:
    """Programs of a node, each with a path outside of the system that it names and this machine has."""
    for software in node.software:
        if (process := software.process) is None:
            continue
        for text in (*process.argv, *process.env.values(), *(process.ready.command or ())):
            for path in _PATH.findall(text):
                if not path.startswith(tuple(f"{top}/" for top in SYSTEM)) and _is_there(path):
                    yield software.name, path


def _named(node: Node) -> Iterator[str]:
    return (path for _, path in paths_of(node) if Path(path).is_file())


def _is_there(path: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return Path(path).exists()
    return False


class Fences:
    """The bounds of a lab's nodes, in its control groups."""

    def __init__(self, groups: Groups, limits: Bounds) -> None:
        self._groups = groups
        self.limits = limits

    def set(self, nodes: Iterable[Node]) -> None:
        """Before anything runs in the groups; LabError where the kernel refuses."""
        lab = Path("vnet") / self._groups.lab
        self._write("memory", lab, self.limits.lab_memory_bytes)
        self._write("pids", lab, self.limits.lab_processes)
        for node in nodes:
            if node.memory_limit_bytes is None:
                self._write("memory", Path(node.cgroup), self.limits.memory_bytes)
            if node.process_limit is None:
                self._write("pids", Path(node.cgroup), self.limits.processes)

    def disk_bytes(self, node: Node) -> int:
        """What all files that a node writes may take together."""
        return node.disk_limit_bytes or self.limits.disk_bytes

    def reached(self, node: Node) -> list[str]:
        """Which bounds the node has run into, in words."""
        found = []
        if count := self._count("memory", node, "oom_kill"):
            memory, rule = self._memory_rule(node)
            found.append(f"memory: {count} killed at {memory >> 20} MiB, {rule}")
        if count := self._count("pids", node, "max"):
            found.append(
                f"processes: {count} not started beyond {node.process_limit or self.limits.processes}"
            )
        return found

    def _memory_rule(self, node: Node) -> tuple[int, str]:
        """Whose bound was reached: the node's, or that of all nodes together."""
        two = self._groups.layout.version == 2
        if two and not self._count("memory", node, "oom"):
            return (
                self.limits.lab_memory_bytes,
                "three quarters of the machine's, which all nodes had together",
            )
        if node.memory_limit_bytes:
            return node.memory_limit_bytes, "the most that it may have"
        return self.limits.memory_bytes, "half of the machine's"

    def _write(self, controller: str, group: Path, value: int) -> None:
        if (root := self._groups.layout.mounts.get(controller)) is None:
            return  # the doctor says which kernels have no such controller
        two = self._groups.layout.version == 2
        name = {"memory": "memory.max" if two else "memory.limit_in_bytes", "pids": "pids.max"}[controller]
        try:
            (root / group / name).write_text(str(value))
        except OSError as error:
            raise LabError(f"{group}/{name} = {value}: the kernel refuses ({error.strerror})") from error

    def _count(self, controller: str, node: Node, key: str) -> int:
        root = self._groups.layout.mounts.get(controller)
        two = self._groups.layout.version == 2
        name = {"memory": "memory.events" if two else "memory.oom_control", "pids": "pids.events"}[controller]
        try:
            lines = (root / node.cgroup / name).read_text().splitlines() if root else []
        except OSError:
            return 0  # the node is gone
        return next((int(words[1]) for words in map(str.split, lines) if words[0] == key), 0)
