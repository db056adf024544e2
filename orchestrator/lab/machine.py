"""Finds this machine's limits for a lab, and checks the free memory before virtual machines are created."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Sequence
from pathlib import Path

from contract.plan import Node
from orchestrator.lab.cgroup import own_pids_max
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm import storage
from orchestrator.plan.capacity import MEMORY_SHARE, VM_BYTES, MachineFacts

MEMINFO = Path("/proc/meminfo")
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
GUEST_CORES = 1  # number of cores of User-Mode Linux as vNET builds it
GUEST_FILES = 1 << 20  # fs.nr_open of the guest, whose first process raises its limit as the plan needs


def available_bytes(meminfo: str | None = None) -> int | None:
    """Returns the bytes of memory that programs can still get, as the kernel estimates it; None if
    /proc/meminfo lacks that line (before Linux 3.14).

    meminfo: the text of /proc/meminfo; None: the function reads the file.
    """
    text = MEMINFO.read_text() if meminfo is None else meminfo
    fields = (line.split() for line in text.splitlines())
    return next((int(field[1]) * 1024 for field in fields if field[0] == "MemAvailable:"), None)


def insist_on_memory(nodes: Sequence[Node], meminfo: str | None = None) -> None:
    """Raises LabError if the virtual machines among `nodes` need more memory, by the planner's figures, than
    MEMORY_SHARE of the memory that is available now. Does nothing if the kernel does not report that. The
    planner checks a lab before it is built; other programs and added machines may use memory later.
    """
    machines = [node for node in nodes if node.vm is not None]
    needed = sum(VM_BYTES + node.vm.memory_bytes for node in machines if node.vm is not None)
    free = available_bytes(meminfo)
    if free is not None and needed > MEMORY_SHARE * free:
        raise LabError(
            f"nodes.{machines[0].name}: {len(machines)} virtual machine(s) need about {needed / 1e6:.0f} MB, "
            f"{free / 1e6:.0f} MB are free; use fewer, less `memory`, or free memory"
        )


def facts(kernel: str, out: Path) -> MachineFacts:
    """Returns the facts of this machine for a lab under `kernel` that writes below `out`.

    Under a guest kernel only memory and disk are the machine's own; cores and open files are those of the
    guest.
    """
    memory, disk = available_bytes(), free_bytes(out)
    disks = _existing(storage.root())
    if kernel == "uml":
        return MachineFacts(
            memory_available_bytes=memory,
            open_files=GUEST_FILES,
            disk_available_bytes=disk,
            cores=GUEST_CORES,
        )
    return MachineFacts(
        memory_available_bytes=memory,
        open_files=_limit(resource.RLIMIT_NOFILE),
        processes=_processes_left(),
        neighbour_entries=int(NEIGHBOURS.read_text()) if NEIGHBOURS.exists() else None,
        disk_available_bytes=disk,
        cores=os.cpu_count(),
        machines_disk_bytes=shutil.disk_usage(disks).free,
        machines_disk_place=str(disks),
    )


def free_bytes(path: Path) -> int:
    """Returns the free bytes of the file system where the path is or will be."""
    return shutil.disk_usage(_existing(path)).free


def _existing(path: Path) -> Path:
    path = path.resolve()
    return path if path.exists() else _existing(path.parent)


def _limit(which: int) -> int | None:
    hard = resource.getrlimit(which)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _processes_left() -> int:
    running = sum(entry.name.isdigit() for entry in Path("/proc").iterdir())
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    allowed = _limit(resource.RLIMIT_NPROC)
    left = min(highest, allowed if allowed is not None else highest) - running
    pids = own_pids_max()
    return left if pids is None else min(left, pids)
