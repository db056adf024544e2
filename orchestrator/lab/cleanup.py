"""Finds and removes everything that a lab left behind, after a crash at any moment, by the lab's name alone.

A thing belongs to the lab only if it bears the lab's mark: namespaces /run/netns/vnet-LAB and vnet-LAB.*,
control groups vnet/LAB below any controller, the state directory, and the directory of its machines' disks;
processes in those groups or namespaces, the processes that lab.json records (while their start_ticks match),
and mounts below the state directory. NICs that the lab leased are given back first, because the end of a
namespace deletes virtual interfaces and leaves physical ones with the wrong name.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.lab import cgroup, mounts, namespaces
from orchestrator.lab.errors import LabError
from orchestrator.lab.state import Owned, forget_root, is_state, processes, start_ticks, state_root
from orchestrator.nics import leases

END_S = 10.0
# Seconds that are added to the time limit for each process: the kernel destroys thousands of namespaces one
# after the other.
EACH_S = 0.01
POLL_S = 0.01


@dataclass
class Removed:
    """The names of the objects that `destroy` removed, and the errors for objects that it could not
    remove.
    """

    processes: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    nics: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    cgroups: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        made = (self.namespaces, self.cgroups, self.mounts, self.directories)
        return not (self.processes or self.domains or self.nics or any(made))


def destroy(lab: str, root: Path | None = None, keep_state: bool = False) -> Removed:
    """Removes all objects of `lab` that exist, except its state directory if `keep_state`; continues after
    errors, which the result contains.
    """
    state_dir = (root or state_root()) / lab
    removed = Removed()
    _end_processes(lab, state_dir, removed)
    _end_domains(lab, state_dir, removed)
    _give_nics_back(lab, state_dir.parent, removed)
    for namespace in namespaces.of(lab):
        _try(removed, removed.namespaces, namespace.name, lambda n=namespace: namespaces.remove(n))  # type: ignore[misc]
    for mount in mounts.below(state_dir):
        _try(removed, removed.mounts, str(mount), lambda m=mount: mounts.unmount(m))  # type: ignore[misc]
    layout = cgroup.this_machine()
    for group in cgroup.lab_groups(layout, lab):
        _try(removed, removed.cgroups, str(group), lambda g=group: cgroup.remove_tree(g))  # type: ignore[misc]
    for tree in layout.roots(cgroup.WANTED):
        _try(removed, [], str(tree / "vnet"), lambda t=tree: cgroup.remove_if_empty(t / "vnet"))  # type: ignore[misc]
    for tree in cgroup.trees():
        parent = tree / "vnet.partition"
        _try(removed, [], str(parent), lambda p=parent: cgroup.remove_if_empty(p))  # type: ignore[misc]
    _remove_disks(state_dir, removed)
    if is_state(state_dir) and not keep_state:
        _try(removed, removed.directories, str(state_dir), lambda: shutil.rmtree(state_dir))
        forget_root(state_dir.parent)
    return removed


def _end_domains(lab: str, state_dir: Path, removed: Removed) -> None:
    """Ends the machines that a libvirt daemon runs for the lab. Machines of the embedded driver are processes
    of the lab.
    """
    # The import is here, because listing names does not need it.
    from orchestrator.lab.vm import leftovers as of_machines

    try:
        removed.domains += of_machines.remove(lab, state_dir)
    except (LabError, OSError) as error:
        removed.errors.append(str(error))


def _remove_disks(state_dir: Path, removed: Removed) -> None:
    """Removes disks and snapshots of the lab's machines, which have ended already."""
    from orchestrator.lab.vm import storage

    try:
        removed.directories += storage.remove(state_dir)
    except OSError as error:
        removed.errors.append(str(error))


def _give_nics_back(lab: str, root: Path, removed: Removed) -> None:
    """Gives NICs back to the machine at once, because the processes that would do so have ended."""
    from orchestrator.nics import recover

    back, errors = recover.give_back(root, lab, patience_s=0)
    removed.nics += back
    removed.errors += errors


def leftovers(lab: str, root: Path | None = None, leases_too: bool = True) -> list[str]:
    """Returns every object of `lab` that exists, one line for each; empty after a complete teardown.
    leases_too: includes leased NICs.
    """
    from orchestrator.lab.vm import leftovers as of_machines
    from orchestrator.lab.vm import storage

    state_dir = (root or state_root()) / lab
    disks = storage.kept(state_dir)
    found = [f"namespace {n.name}" for n in namespaces.of(lab)]
    found += [f"cgroup {g}" for g in cgroup.lab_groups(cgroup.this_machine(), lab)]
    found += [f"mount {m}" for m in mounts.below(state_dir)]
    found += [f"process {p.pid} ({p.role})" for p in _living(lab, state_dir)]
    found += of_machines.listed(lab, state_dir)
    found += [f"NIC {le.key}" for le in leases.of_lab(state_dir.parent, lab) if leases_too]
    found += [f"directory {disks}"] if disks.is_dir() else []
    return found + ([f"directory {state_dir}"] if is_state(state_dir) else [])


def labs(root: Path | None = None) -> list[str]:
    """Returns the sorted names of all labs that have a state directory, a lease, a namespace or a control
    group here.
    """
    directory = root or state_root()
    there = directory.iterdir() if directory.is_dir() else ()
    found = {d.name for d in there if is_state(d)}
    found |= {lease.lab for lease in leases.every(directory)}
    return sorted(found | namespaces.labs() | cgroup.labs(cgroup.this_machine()))


def running_labs() -> list[str]:
    """Returns the names of this user's labs: those with a state directory, running or not.

    For root, also returns labs of which only namespaces, control groups or leases are left, unless
    VNET_STATE_DIR is set, because these may belong to labs with another state directory.
    """
    if os.geteuid() == 0 and "VNET_STATE_DIR" not in os.environ:
        return labs()
    root = state_root()  # labs of ordinary users leave nothing outside this directory
    return sorted(d.name for d in root.iterdir() if is_state(d)) if root.is_dir() else []


def _end_processes(lab: str, state_dir: Path, removed: Removed) -> None:
    """Kills the lab's processes until none is left, since a process may fork between two scans; records an
    error for processes that do not end. It kills the lab process first, because that starts others.
    """
    began = time.monotonic()
    seen: set[Owned] = set()
    while living := _living(lab, state_dir):
        for process in living:
            if process not in seen:
                seen.add(process)
                removed.processes.append(f"{process.pid} ({process.role})")
            _kill(process)
        if time.monotonic() - began > END_S + EACH_S * len(seen):
            removed.errors += [f"process {p.pid} ({p.role}) does not end" for p in living]
            return
        time.sleep(POLL_S)  # waits until all have ended, which _living shows; the deadline is checked above


def _living(lab: str, state_dir: Path) -> list[Owned]:
    ours = _self_and_ancestors()
    recorded = [p for p in processes(state_dir) if p.alive]
    found = {p.pid: p for p in [*_in_namespaces(lab), *_in_groups(lab), *recorded]}
    return [p for p in sorted(found.values(), key=lambda p: p.role != "lab") if p.pid not in ours]


def _in_groups(lab: str) -> Iterable[Owned]:
    for group in cgroup.lab_groups(cgroup.this_machine(), lab):
        yield from _owned("in its control group", cgroup.members(group))


def _in_namespaces(lab: str) -> Iterable[Owned]:
    inodes = namespaces.inodes(namespaces.of(lab))
    if not inodes:
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            status = namespaces.stat_of(entry / "ns" / "net")
            if status is not None and (status.st_dev, status.st_ino) in inodes:
                yield from _owned("in its namespace", [int(entry.name)])


def _owned(role: str, pids: Iterable[int]) -> Iterable[Owned]:
    for pid in pids:
        if (ticks := start_ticks(pid)) is not None:
            yield Owned(role, pid, ticks)


def _self_and_ancestors() -> set[int]:
    found, pid = set(), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except FileNotFoundError:
            break
    return found


def _kill(process: Owned) -> None:
    if process.alive:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _try(removed: Removed, done: list[str], name: str, action: Callable[[], object]) -> None:
    try:
        action()
    except OSError as error:
        removed.errors.append(f"{name}: {error}")
    else:
        done.append(name)
