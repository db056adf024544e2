"""Determines the sandbox of light nodes: which files of the host their programs see, and how much memory,
disk and processes they may use.

The launcher builds the sandbox (docs/decisions/contained-nodes.md); control groups enforce the limits on
memory and processes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contract.plan import Node
from orchestrator.lab.cgroup import Groups, put, text_of
from orchestrator.lab.errors import LabError
from orchestrator.lab.operations import Mounts, Sandbox

# largest size of one node's files: its directory, /tmp, /run, /var/tmp and /dev/shm together
DISK_BYTES = 512 << 20
DISK_SHARE = 4  # the files are in memory, and take at most this fraction of it: a quarter
# Largest memory of the rings of packet sockets of one node; no control group counts this memory.
RING_BYTES = 64 << 20
LEAST_RING_BYTES = 4 << 20  # tcpdump needs 2 MiB
RING_SHARE = 8  # the rings of all nodes together take at most this fraction of the memory: an eighth
PROCESSES = 1024  # largest number of processes of one node, including threads
NODE_SHARE = 2  # a node may use this fraction of the host's memory: half
LAB_SHARE = 0.75  # all nodes together may use this share of the host's memory and processes
# paths that every node sees
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys")
_PATH = re.compile(r"/[^\s'\"`;|&<>()$=:,\\]+")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The default limits of one node, and the limits for all nodes of a lab together."""

    memory_bytes: int
    disk_bytes: int
    processes: int
    lab_memory_bytes: int
    lab_processes: int
    ring_bytes: int  # for all nodes together: largest memory of the rings of packet sockets


def bounds(memory_bytes: int, processes: int) -> Bounds:
    """Returns the limits for a host with this much memory (bytes) that can run this many processes."""
    return Bounds(
        memory_bytes // NODE_SHARE,
        min(DISK_BYTES, memory_bytes // DISK_SHARE),
        PROCESSES,
        int(memory_bytes * LAB_SHARE),
        int(processes * LAB_SHARE),
        memory_bytes // RING_SHARE,
    )


def of_this_machine() -> Bounds:
    """Returns the limits for the kernel on which this process runs, from /proc; under `uml` that is the
    guest.
    """
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = next(int(field[1]) * 1024 for field in fields if field[0] == "MemTotal:")
    most = [int(Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("pid_max", "threads-max")]
    return bounds(memory, min(most))


def request(state_root: Path, run_dir: Path, replaced: dict[str, str], disk_bytes: int) -> Sandbox:
    """Returns the launcher's settings of the sandbox, which hide the state of all labs and the results of
    this run from nodes.
    """
    return {
        "hidden": [str(state_root), str(run_dir)],
        "replaced": replaced,
        "logs": str(run_dir / "raw" / "logs"),
        "disk_bytes": disk_bytes,
    }


def mounts(node: Node) -> Mounts:
    """Returns the host's paths that the topology mounts in a node, and the files that its commands name. A
    node with a container image gets only the image's root; raises LabError if the image is not unpacked.
    """
    if node.image:
        if not node.image_root:
            raise LabError(
                f"node {node.name}: its image {node.image} is not unpacked; start the lab again with it"
            )
        found: Mounts = {"copy": [], "read": [], "write": [], "named": [], "root": node.image_root}
    else:
        found = {
            "copy": list(node.mounts_copy),
            "read": list(node.mounts_read),
            "write": list(node.mounts_write),
            "named": sorted(set(_named(node))),
        }
    if any(card.nic for card in node.interfaces):
        found["cards"] = True
    return found


def paths_of(node: Node) -> Iterator[tuple[str, str]]:
    """Yields (program, path) for each absolute path in a node's commands, ready commands and environment
    values that exists on this host and is outside the system directories.
    """
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


class NodeLimits:
    """Sets default limits of a lab's nodes in its control groups, and reports which were reached."""

    def __init__(self, groups: Groups, limits: Bounds) -> None:
        self._groups = groups
        self.limits = limits

    def set(self, nodes: Iterable[Node]) -> None:
        """Sets the limits of all nodes together and the default limits of these nodes, except limits that the
        topology sets. Skips controllers that the kernel lacks; raises LabError if the kernel refuses.
        """
        lab = f"vnet/{self._groups.lab}"
        self._write("memory", lab, self.limits.lab_memory_bytes)
        self._write("pids", lab, self.limits.lab_processes)
        for node in nodes:
            if node.memory_limit_bytes is None:
                self._write("memory", node.cgroup, self.limits.memory_bytes)
            if node.process_limit is None:
                self._write("pids", node.cgroup, self.limits.processes)

    def disk_bytes(self, node: Node) -> int:
        """Returns the most bytes that all files of a node may take together: the topology's limit, else the
        default.
        """
        return node.disk_limit_bytes or self.limits.disk_bytes

    def ring_bytes(self, nodes: int) -> int:
        """Returns the most bytes that the rings of all packet sockets of one of `nodes` nodes may take."""
        return min(RING_BYTES, max(LEAST_RING_BYTES, self.limits.ring_bytes // max(nodes, 1)))

    def reached(self, node: Node) -> list[str]:
        """Returns a text for each limit (memory, processes) that the node has reached; empty if none, or if
        the counters cannot be read.
        """
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
        """Returns the memory limit that was reached (bytes) and a text. The limit is the node's, unless
        control groups of version 2 report that the node's own limit was not reached; then it is that of all
        nodes together.
        """
        two = self._groups.layout.version == 2
        if two and not self._count("memory", node, "oom"):
            return (
                self.limits.lab_memory_bytes,
                "three quarters of the machine's, which all nodes had together",
            )
        if node.memory_limit_bytes:
            return node.memory_limit_bytes, "the most that it may have"
        return self.limits.memory_bytes, "half of the machine's"

    def _write(self, controller: str, group: str, value: int) -> None:
        if (root := self._groups.layout.mounts.get(controller)) is None:
            return  # `vnet doctor` reports a kernel without this controller
        two = self._groups.layout.version == 2
        name = {"memory": "memory.max" if two else "memory.limit_in_bytes", "pids": "pids.max"}[controller]
        try:
            put(f"{root}/{group}/{name}", str(value))
        except OSError as error:
            raise LabError(f"{group}/{name} = {value}: the kernel refuses ({error.strerror})") from error

    def _count(self, controller: str, node: Node, key: str) -> int:
        root = self._groups.layout.mounts.get(controller)
        two = self._groups.layout.version == 2
        name = {"memory": "memory.events" if two else "memory.oom_control", "pids": "pids.events"}[controller]
        try:
            lines = text_of(f"{root}/{node.cgroup}/{name}").splitlines() if root else []
        except OSError:
            return 0  # the node does not exist any more
        return next((int(words[1]) for words in map(str.split, lines) if words[0] == key), 0)
