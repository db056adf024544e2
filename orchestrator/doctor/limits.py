"""Reports on the limits of a lab's size: open files, processes, memory, /dev/shm, bridge ports."""

from __future__ import annotations

import resource

from orchestrator.doctor.finding import Finding, State
from orchestrator.kernel.uml.boot import BASE_BYTES, MIB, NODE_BYTES, usable
from orchestrator.kernel.uml.outer import available_bytes
from orchestrator.lab.cgroup import own_pids_max
from orchestrator.plan.capacity import VM_BYTES
from orchestrator.plan.vms import memory as image_memory

NODES = 350  # the paper's largest scenario, section III
FILES_PER_NODE = 8  # launcher: socket pair, namespaces, cgroup files, log
MACHINES = ("builtin-tiny", "builtin", "debian")  # images whose machines are counted
BRIDGE_PORTS = 1023  # net/bridge/br_private.h: BR_PORT_BITS 10, port 0 unused


def findings() -> list[Finding]:
    """Returns the findings on limits of this session and machine, compared with the needs of a lab of NODES
    nodes.
    """
    return [descriptors(), processes(), memory(available_bytes()), shared_memory(), bridge()]


def descriptors(hard: int | None = None) -> Finding:
    """Returns a finding on whether the hard limit of open files allows NODES nodes; the limit is
    RLIMIT_NOFILE, or `hard` if given. The soft limit does not count, since a lab raises it.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if hard is None else hard
    return _bound(
        "open files", hard, NODES * FILES_PER_NODE, FILES_PER_NODE, "ulimit -Hn 65536 (limits.conf: nofile)"
    )


def processes(hard: int | None = None, pids: int | None = None) -> Finding:
    """Returns a finding on whether the lower of RLIMIT_NPROC and the cgroup's pids.max allows NODES nodes,
    with two processes each. `hard` and `pids` replace these limits; one that is unlimited or unknown does not
    count.
    """
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1] if hard is None else hard
    known = [n for n in (hard, own_pids_max() if pids is None else pids) if n is not None and n > 0]
    return _bound(
        "processes",
        min(known, default=-1),
        NODES * 2,
        2,
        "ulimit -Hu 8192, or raise TasksMax= / --pids-limit",
    )


def memory(available: int) -> Finding:
    """Returns a finding on the number of light nodes, and of virtual machines as `vnet plan` computes it,
    that fit into three quarters of `available` bytes of memory; ok from NODES light nodes, missing for none.
    """
    room = available * 3 // 4
    nodes = max(0, (room - BASE_BYTES) // NODE_BYTES)
    machines = (f"{room // (VM_BYTES + image_memory(name))} of {name}" for name in MACHINES)
    found = f"{available // MIB} MiB available: about {nodes} light nodes, or machines: {', '.join(machines)}"
    if nodes >= NODES:
        return Finding("memory", "ok", found)
    state: State = "limited" if nodes else "missing"
    consequence = f"a lab of {NODES} nodes does not fit"
    return Finding("memory", state, found, consequence, "close other programs")


def shared_memory() -> Finding:
    """Returns a finding on whether programs may be mapped from /dev/shm, where lab kernels (`--kernel uml`)
    keep their memory.
    """
    if usable("/dev/shm"):
        return Finding("/dev/shm", "ok", "programs may be mapped from it")
    consequence = "guests under --kernel uml keep their memory in TMPDIR instead, perhaps on a disk"
    return Finding(
        "/dev/shm", "limited", "missing, or mounted noexec", consequence, "mount -o remount,exec /dev/shm"
    )


def bridge() -> Finding:
    """Returns a finding that states the kernel's fixed limit of ports on a bridge; its state is always ok."""
    return Finding(
        "bridge ports", "ok", f"{BRIDGE_PORTS} a segment; larger segments are refused by vnet check"
    )


def _bound(subject: str, bound: int, wanted: int, each: int, remedy: str) -> Finding:
    if bound < 0 or bound >= wanted:
        return Finding(subject, "ok", "no limit" if bound < 0 else f"at most {bound}")
    consequence = f"labs of more than about {bound // each} nodes fail"
    return Finding(
        subject, "limited", f"at most {bound}, {wanted} wanted for {NODES} nodes", consequence, remedy
    )
