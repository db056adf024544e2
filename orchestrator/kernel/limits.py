"""Compares a plan with the limits of this machine: capacity, NICs, and the paths that its nodes need."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Sequence
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel import visible
from orchestrator.kernel.protocol import Fit, Missing
from orchestrator.lab.cgroup import own_pids_max
from orchestrator.lab.meminfo import available_bytes
from orchestrator.lab.vm import storage
from orchestrator.language.problem import Problem
from orchestrator.plan.capacity import MachineFacts, problems
from orchestrator.plan.nics import NicUse, nic_uses

GUEST_CORES = 1  # User-Mode Linux as built here
GUEST_FILES = 65536  # what the guest's init raises the limit to (kernel/uml/init.py)
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def fit(plan: Plan, missing: Sequence[Missing], kernel: str, out: Path) -> Fit:
    """Returns the Fit of a plan under a kernel of this machine: what is missing; if nothing is, the exceeded
    limits.
    """
    return Fit(plan, missing, () if missing else exceeded(plan, kernel, out))


def exceeded(plan: Plan, kernel: str, out: Path) -> list[Problem]:
    """Returns problems of a plan under a kernel of this machine: unavailable NICs, exceeded limits, hidden
    paths.
    """
    nics = nic_problems(plan) if kernel == "host" else []
    unseen = visible.problems(plan, kernel) if kernel != "fake" else []
    return nics + problems(plan, facts(kernel, out)) + unseen


def on_any(plan: Plan, out: Path) -> list[Problem]:
    """Returns problems of a plan that no kernel of this machine can carry, as for a guest kernel (memory,
    disk, cores, open files) and for NICs. The user may mean another machine.
    """
    return nic_problems(plan) + problems(plan, facts("uml", out))


def of_disk(plan: Plan, out: Path) -> list[Problem]:
    """Returns problems of a plan whose run directory alone is on this machine: too little free disk space."""
    return problems(plan, MachineFacts(disk_available_bytes=shutil.disk_usage(_existing(out)).free))


def nic_problems(plan: Plan) -> list[Problem]:
    """Returns a problem with its remedy for every NIC of the plan that is not available here; changes
    nothing.
    """
    uses = nic_uses(plan)
    return _refused(plan, uses) if uses else []


def _refused(plan: Plan, uses: list[NicUse]) -> list[Problem]:
    # Imported here: most plans ask for no NIC.
    from orchestrator.lab.nics import held
    from orchestrator.lab.state import state_root
    from orchestrator.nics.facts import look
    from orchestrator.nics.model import NicError
    from orchestrator.nics.resolve import resolve

    try:
        choices = resolve(uses, look(), held(state_root()))
    except NicError as error:
        return [
            Problem(plan.topology, 0, uses[0].place, f'"{uses[0].asked}"', str(error), "see `vnet doctor`")
        ]
    return [
        Problem(plan.topology, 0, c.use.place, f'"{c.use.asked}"', c.refusal.rule, c.refusal.remedy)
        for c in choices
        if c.refusal is not None
    ]


def facts(kernel: str, out: Path) -> MachineFacts:
    """Returns the facts of this machine for a lab under `kernel` that writes below `out`.

    Under a guest kernel only memory and disk are the machine's own; cores and open files are the guest's.
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
