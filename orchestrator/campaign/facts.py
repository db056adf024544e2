"""What this machine can hold, looked up for the planner's capacity check."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

from orchestrator.plan.capacity import MachineFacts

NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def facts(kernel: str, out: Path) -> MachineFacts:
    """Facts for a lab under `kernel` that writes below `out`.

    In a guest kernel only memory and disk are the machine's own; processes and neighbours are the guest's.
    """
    memory, disk = _available_memory(), shutil.disk_usage(_existing(out)).free
    if kernel == "uml":
        return MachineFacts(memory_available_bytes=memory, disk_available_bytes=disk)
    return MachineFacts(
        memory_available_bytes=memory,
        open_files=_limit(resource.RLIMIT_NOFILE),
        processes=_processes_left(),
        neighbour_entries=int(NEIGHBOURS.read_text()) if NEIGHBOURS.exists() else None,
        disk_available_bytes=disk,
    )


def _existing(path: Path) -> Path:
    path = path.resolve()
    return path if path.exists() else _existing(path.parent)


def _available_memory() -> int | None:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _limit(which: int) -> int | None:
    hard = resource.getrlimit(which)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _processes_left() -> int:
    running = sum(entry.name.isdigit() for entry in Path("/proc").iterdir())
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    allowed = _limit(resource.RLIMIT_NPROC)
    return min(highest, allowed if allowed is not None else highest) - running
