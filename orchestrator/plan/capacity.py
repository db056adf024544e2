"""Checks that a machine can hold a plan: compares the plan's predictions with the machine's facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Plan, Vm

from ..language.problem import Problem

# Memory of a VM besides the guest's own: QEMU with its translation cache, its share of kernel and initrd (20
# to 45 MB).
VM_BYTES = 50_000_000
# Disk space of a booted machine: its linked clone (16 MB for `debian`, 19 after cloud-init) and seed.
DISK_BYTES = 25_000_000
LEAST_MIB = 40  # least memory with which the smallest built-in image boots
# The largest share of free memory that a lab may take; the rest is for the run's output and the machine.
MEMORY_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The resources of the machine; None: unknown, or without a limit."""

    memory_available_bytes: int | None = None
    open_files: int | None = None  # hard limit of one process (RLIMIT_NOFILE)
    processes: int | None = None  # remainder of RLIMIT_NPROC, pid_max and pids.max
    bridge_ports: int = 1023  # BR_MAX_PORTS, net/bridge/br_private.h
    neighbour_entries: int | None = None  # net.ipv4.neigh.default.gc_thresh3; all namespaces share one table
    disk_available_bytes: int | None = None  # free space of the run directory's disk
    cores: int | None = None  # cores of the kernel that carries the lab
    machines_disk_bytes: int | None = None  # free disk space where the disks of virtual machines are kept
    machines_disk_place: str = ""


def problems(plan: Plan, facts: MachineFacts) -> list[Problem]:
    """Returns a problem for every limit of the machine (memory, open files, processes, neighbours, disks,
    bridge ports, cores) that the plan's predictions exceed; empty if the plan fits. Unknown limits are not
    checked.
    """
    return [
        *_memory(plan, facts),
        *_counted(plan, facts),
        *_disk(plan, facts),
        *_ports(plan, facts),
        *_cores(plan, facts),
    ]


def _total(plan: Plan, name: str, scope: str | None = None) -> float:
    """Returns the largest prediction of that name, in `scope` if given; 0 if there is none."""
    values = [p.value for p in plan.predictions if p.name == name and scope in (None, p.scope)]
    return max(values, default=0.0)


def _problem(plan: Plan, what: str, value: str, rule: str, remedy: str) -> Problem:
    return Problem(plan.topology, 0, what, value, rule, remedy)


def _memory(plan: Plan, facts: MachineFacts) -> Iterator[Problem]:
    """Yields a problem if the lab needs more than 90 % of the free memory."""
    needed, free = _total(plan, "memory"), facts.memory_available_bytes
    if free is not None and needed > MEMORY_SHARE * free:
        vms = [node.vm for node in plan.nodes if node.vm is not None]
        given = sum(vm.memory_bytes for vm in vms)
        of_vms = f", {given / 1e6:.0f} MB of it the memory of {len(vms)} virtual machines" if vms else ""
        rule = f"the lab needs about {needed / 1e6:.0f} MB{of_vms}, {free / 1e6:.0f} MB are free"
        remedy = "use fewer nodes, " + ("less `memory`, " if vms else "") + "or free memory"
        if vms:
            remedy += _that_fit(vms, needed, MEMORY_SHARE * free)
        yield _problem(plan, "memory", f"{len(plan.nodes)} nodes", rule, remedy)


def _that_fit(vms: Sequence[Vm], needed: float, room: float) -> str:
    """Returns text on the number of VMs that fit into the free memory, and on the memory of each with which
    all of them fit; "" if not even one fits.
    """
    given = sum(VM_BYTES + vm.memory_bytes for vm in vms)
    left = room - (needed - given)
    count = int(left // (given / len(vms)))
    if count < 1:
        return ""
    each = (left / len(vms) - VM_BYTES) / (1 << 20)
    smaller = f", or all with {int(each)} MiB each" if each >= LEAST_MIB else ""
    return f" ({count} of these machines fit{smaller})"


def _counted(plan: Plan, facts: MachineFacts) -> Iterator[Problem]:
    table = (
        ("open files", facts.open_files, "raise the hard limit (ulimit -Hn; LimitNOFILE= of a service)"),
        ("processes", facts.processes, "raise ulimit -u, kernel.pid_max or the cgroup's pids.max"),
        (
            "neighbour entries",
            facts.neighbour_entries,
            "sysctl -w net.ipv4.neigh.default.gc_thresh3=16384, or --kernel uml",
        ),
    )
    for name, limit, remedy in table:
        needed = _total(plan, name)
        if limit is not None and needed > limit:
            yield _problem(plan, name, f"{needed:.0f}", f"this machine allows {limit}", remedy)


def _disk(plan: Plan, facts: MachineFacts) -> Iterator[Problem]:
    """Yields a problem if the captures, or the disks of virtual machines, exceed the free disk space."""
    needed = sum(p.value for p in plan.predictions if p.name == "capture size")
    free = facts.disk_available_bytes
    if free is not None and needed > free:
        rule = f"captures need up to {needed / 1e6:.0f} MB, {free / 1e6:.0f} MB are free"
        yield _problem(
            plan, "captures", "", rule, "shorten the hold, lower `snaplen`, or choose another --results"
        )
    needed, free = _total(plan, "disks"), facts.machines_disk_bytes
    if free is not None and needed > free:
        rule = (
            f"disks of virtual machines take about {needed / 1e6:.0f} MB once booted, {free / 1e6:.0f} MB "
            f"are free at {facts.machines_disk_place}"
        )
        yield _problem(plan, "disks", "", rule, "free disk space, or set VNET_DISK_DIR")


def _ports(plan: Plan, facts: MachineFacts) -> Iterator[Problem]:
    """Yields a problem for each segment with more ports than a bridge has; none for a multi-host plan, whose
    placement has counted them.
    """
    if plan.hosts:
        return  # each of these segments has a bridge on each host, whose ports the placement has counted
    count = Counter(card.segment for node in plan.nodes for card in node.interfaces)
    for link in plan.links:
        for pair in link.joins:
            count.update(pair)
    for segment, ports in count.items():
        if ports > facts.bridge_ports:
            rule = f"a bridge has at most {facts.bridge_ports} ports"
            yield _problem(plan, f"segments.{segment}", f"{ports} ports", rule, "join more segments by links")


def _cores(plan: Plan, facts: MachineFacts) -> Iterator[Problem]:
    """Yields a problem if CPU reservations of light nodes in cores exceed the cores. Reservations in MHz are
    not checked here, since they depend on the clock of the lab's kernel.
    """
    booked = sum(node.cpu_reserve_cores or 0.0 for node in plan.nodes if node.vm is None)
    if facts.cores is not None and booked > facts.cores:
        rule = f"the lab's kernel has {facts.cores} core{'s' * (facts.cores != 1)}"
        yield _problem(plan, "cpu_reserve", f"{booked:g} cores together", rule, "reserve less")
