"""Reads the limits of this machine for the planner's capacity check."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

from orchestrator.lab.cgroup import own_pids_max
from orchestrator.lab.meminfo import available_bytes
from orchestrator.lab.vm import storage
from orchestrator.plan.capacity import MachineFacts

GUEST_CORES = 1  # User-Mode Linux as built here
GUEST_FILES = 65536  # what the guest's init raises the limit to (kernel/uml/init.py)
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def facts(kernel: str, out: Path) -> MachineFacts:
    """Facts for a lab under `kernel` that writes below `out`.

    In a guest kernel only memory and disk are the machine's own; the rest is the guest's.
    """
    memory, disk = available_bytes(), shutil.disk_usage(_existing(out)).free
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
