"""Reports on the machine's own kernel: rights, netem, other qdiscs, link kinds, cgroups and the sandbox."""

from __future__ import annotations

import os
import re
from pathlib import Path

from orchestrator.doctor.finding import Finding, State
from orchestrator.kernel.facts import LINKS, MATCHES, QDISCS, HostFacts
from orchestrator.lab.cgroup import this_machine

KERNEL_REMEDY = "apt-get install linux-image-amd64 and boot it; or use --kernel uml, which needs nothing"
MOUNT_V2 = "mount -t cgroup2 none /sys/fs/cgroup (or boot with systemd.unified_cgroup_hierarchy=1)"


def findings(facts: HostFacts) -> list[Finding]:
    """Returns the findings on the abilities of labs under `--kernel host` on this machine."""
    return [_rights(facts), _netem(facts), _qdiscs(facts), _links(facts), *cgroups(facts), sandbox()]


def sandbox(release: str | None = None, proc: Path = Path("/proc")) -> Finding:
    """Returns a finding on which parts of the nodes' sandbox the kernel supports (docs/security.md). release,
    proc: the kernel's release and the proc file system, by default those of this machine.
    """
    number = tuple(int(n) for n in re.findall(r"\d+", release or os.uname().release)[:2])
    lost = {
        "a view of its own of the machine's files: labs do not start": number < (5, 12),
        "users of its own: routing daemons do not start": not (proc / "self/ns/user").exists(),
        "a filter of system calls": not (proc / "sys/kernel/seccomp/actions_avail").exists(),
        "a bound on processes": "pids" not in this_machine().mounts,
    }
    absent = [what for what, missing in lost.items() if missing]
    if not absent:
        return Finding("sandbox of nodes", "ok", "own files, processes, users; filtered calls; bounds")
    state: State = "missing" if number < (5, 12) else "limited"
    return Finding(
        "sandbox of nodes", state, f"not {'; not '.join(absent)}", "see docs/security.md", KERNEL_REMEDY
    )


def _rights(facts: HostFacts) -> Finding:
    found = f"Linux {facts.kernel}, {'root' if facts.root else 'not root'}"
    if facts.namespaces is not None:
        found += f", no network namespaces: {facts.namespaces}"
    if facts.root and facts.namespaces is None:
        return Finding("kernel", "ok", found)
    consequence = "labs cannot run in the machine's own kernel; --kernel uml can"
    return Finding(
        "kernel", "limited", found, consequence, "run vnet as root" if not facts.root else KERNEL_REMEDY
    )


def _netem(facts: HostFacts) -> Finding:
    if (refusal := facts.lacks("netem")) is None:
        return Finding("netem", "ok", "a delay was set in a throwaway namespace")
    consequence = (
        "links with an impairment need --kernel uml; labs without impairments still run in this kernel"
    )
    return Finding("netem", "missing", refusal, consequence, KERNEL_REMEDY)


def _qdiscs(facts: HostFacts) -> Finding:
    kinds = [kind for kind in (*QDISCS, *MATCHES) if kind != "netem"]
    return _several("qdiscs", kinds, facts, "commands in nodes that use these fail under --kernel host")


def _links(facts: HostFacts) -> Finding:
    return _several(
        "link kinds", list(LINKS), facts, "without veth and bridge no lab runs under --kernel host"
    )


def _several(subject: str, kinds: list[str], facts: HostFacts, consequence: str) -> Finding:
    absent = [kind for kind in kinds if facts.lacks(kind) is not None]
    present = [kind for kind in kinds if kind not in absent]
    if not absent:
        return Finding(subject, "ok", ", ".join(present))
    found = f"{', '.join(present) or 'none'}; not {', '.join(absent)}"
    state: State = "limited" if present else "missing"
    return Finding(subject, state, found, consequence, KERNEL_REMEDY)


def cgroups(facts: HostFacts) -> list[Finding]:
    """Returns one finding on the version and controllers of cgroups, which limits and CPU times of nodes
    need: `missing` without any of cpu, memory and cpuacct, `limited` without one of them.
    """
    layout = {0: "none mounted", 1: "version 1", 2: "version 2"}[facts.cgroup_version]
    found = f"{layout}; controllers {', '.join(sorted(facts.controllers)) or 'none'}"
    lost = {
        "cpu": "CPU limits and reservations",
        "memory": "memory limits and memory per node",
        "cpuacct": "CPU time per node",
    }
    absent = [what for controller, what in lost.items() if controller not in facts.controllers]
    if not absent:
        return [Finding("cgroups", "ok", found)]
    consequence = f"refused under --kernel host: {'; '.join(absent)}"
    return [
        Finding("cgroups", "missing" if len(absent) == len(lost) else "limited", found, consequence, MOUNT_V2)
    ]
