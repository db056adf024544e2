"""What this machine can hold, looked up for the planner's capacity check."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

from orchestrator.campaign import visible
from orchestrator.campaign.hardware import nic_problems
from orchestrator.campaign.place import machine_of
from orchestrator.kernel.choose import NoKernel, choose
from orchestrator.lab.cgroup import own_pids_max
from orchestrator.lab.meminfo import available_bytes
from orchestrator.model import Plan
from orchestrator.plan.capacity import MachineFacts, problems
from orchestrator.topology import TopologyError

GUEST_CORES = 1  # User-Mode Linux as built here
GUEST_FILES = 65536  # what the guest's init raises the limit to (kernel/uml/init.py)
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def insist_it_fits(plan: Plan, out: Path = Path()) -> None:
    """TopologyError where the kernel that a run would choose cannot hold the plan; makes nothing.

    Where no kernel here can carry the plan at all, another machine may be meant: memory, disk, bridges and
    the limits of a guest are held against it all the same. Machines that the file names are asked by a run,
    and by nothing that only reads files.
    """
    if plan.hosts or machine_of(plan) is not None:
        return
    try:
        kernel = choose(plan).kernel.name
    except NoKernel:
        kernel = "uml"
    seen = visible.problems(plan, kernel)
    if found := nic_problems(plan) + seen + problems(plan, facts(kernel, out)):
        raise TopologyError(found)


def facts(kernel: str, out: Path) -> MachineFacts:
    """Facts for a lab under `kernel` that writes below `out`.

    In a guest kernel only memory and disk are the machine's own; the rest is the guest's.
    """
    memory, disk = available_bytes(), shutil.disk_usage(_existing(out)).free
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
