"""Sets CPU limit, CPU reservation, memory and process limit of nodes: converts MHz and cores to the kernel's
units.

A limit is a quota of each period: the node gets at most that share of one core's real clock. A reservation is
the least share that a node gets when all nodes use the machine fully. It becomes a weight in proportion to
the reserved cores; nodes without a reservation share the rest. The lab as a whole still competes with other
programs of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.plan import Node
from orchestrator.lab.cgroup import Groups
from orchestrator.lab.errors import LabError

PERIOD_US = 100_000
LONG_PERIOD_US = 1_000_000
LEAST_QUOTA_US = 1_000  # least quota in us: min_cfs_quota_period of kernel/sched/core.c
SHARES_PER_CORE = 1024
WEIGHT_PER_CORE = 500


@dataclass(frozen=True, slots=True)
class Quota:
    quota_us: int
    period_us: int

    @property
    def cores(self) -> float:
        return self.quota_us / self.period_us


def real_mhz(cpuinfo: str, cpufreq_khz: str | None) -> float | None:
    """Returns the clock rate that MHz limits refer to: cpufreq's maximum, else the highest in /proc/cpuinfo;
    None if neither has it.
    """
    if cpufreq_khz:
        return int(cpufreq_khz) / 1000
    values = [
        float(line.split(":")[1]) for line in cpuinfo.splitlines() if line.lower().startswith("cpu mhz")
    ]
    return max(values, default=None)


def this_clock_mhz() -> float | None:
    cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    return real_mhz(Path("/proc/cpuinfo").read_text(), cpufreq.read_text() if cpufreq.exists() else None)


def cores_of(node: Node, what: str, mhz: float | None) -> float | None:
    """Returns a node's CPU limit or reservation (`what`: "limit" or "reserve") in cores; None if it has none.
    Raises LabError if it is in MHz and the clock rate is unknown.
    """
    cores: float | None = getattr(node, f"cpu_{what}_cores")
    asked_mhz: float | None = getattr(node, f"cpu_{what}_mhz")
    if asked_mhz is None:
        return cores
    if mhz is None:
        raise LabError(
            f"nodes.{node.name}: cpu_{what}_mhz {asked_mhz:g}: this kernel does not report its clock rate; "
            f"give the {what} as a share of a core"
        )
    return asked_mhz / mhz


def quota(cores: float) -> Quota:
    """Returns the quota that gives `cores`, in a period of 100 ms, or of 1 s below 0.01 cores; raises
    LabError below 0.001 cores, the least that the kernel allows.
    """
    for period in (PERIOD_US, LONG_PERIOD_US):
        if (us := round(cores * period)) >= LEAST_QUOTA_US:
            return Quota(us, period)
    raise LabError(f"CPU limit of {cores:.5f} cores: the kernel's least is 0.001 cores; ask for more")


def weights(reserved: dict[str, float | None], cores: int, scale: int, least: int) -> dict[str, int]:
    """Returns a weight for each node in proportion to its reservation, at least `least`; empty if no node has
    one. Nodes without a reservation (None) share the remaining cores equally. Raises LabError if the
    reservations exceed `cores`.

    scale: the weight of one core.
    """
    booked = [r for r in reserved.values() if r is not None]
    if not booked:
        return {}
    if sum(booked) > cores:
        raise LabError(
            f"CPU reservations of {sum(booked):.2f} cores together: the machine has {cores}; reserve less"
        )
    others = len(reserved) - len(booked)
    left = (cores - sum(booked)) / others if others else 0.0
    return {name: max(least, round((left if r is None else r) * scale)) for name, r in reserved.items()}


class Limits:
    """Sets limits of nodes in the lab's control groups and reads them back. cores, mhz: of this machine."""

    def __init__(self, groups: Groups, cores: int, mhz: float | None) -> None:
        self._groups = groups
        self._cores = cores
        self.mhz = mhz

    def need(self, nodes: Sequence[Node]) -> None:
        """Adds the controllers that the nodes' limits need, before their groups are made; raises LabError if
        one is missing, or if a value is in MHz and the clock rate is unknown.
        """
        for node in nodes:
            for what in ("limit", "reserve"):
                if cores_of(node, what, self.mhz) is not None:
                    self._groups.need("cpu", f"nodes.{node.name}: CPU {what}")
            if node.memory_limit_bytes is not None:
                self._groups.need("memory", f"nodes.{node.name}: memory limit")
            if node.process_limit is not None:
                self._groups.need("pids", f"nodes.{node.name}: process limit")

    def reserve(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Sets the CPU weights of all nodes of the lab, if any node has a reservation; returns the weights as
        read back, by node.
        """
        file = "cpu.weight" if self._groups.layout.version == 2 else "cpu.shares"
        by_name = {n.name: n for n in nodes}
        return {
            name: int(self._set("cpu", by_name[name], file, str(weight)))
            for name, weight in self.weights(nodes).items()
        }

    def weights(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Returns the CPU weights for these nodes' reservations; raises LabError if the reservations together
        exceed the machine's cores.
        """
        asked = {n.name: cores_of(n, "reserve", self.mhz) for n in nodes}
        scale, least = (WEIGHT_PER_CORE, 1) if self._groups.layout.version == 2 else (SHARES_PER_CORE, 2)
        return weights(asked, self._cores, scale, least)

    def set(self, node: Node) -> dict[str, Any]:
        """Sets a node's limits of CPU, memory and processes and reads them back; returns the applied values,
        {} if the node has no limits. Raises LabError if the kernel refuses a limit or reads back another
        value.
        """
        applied: dict[str, Any] = {}
        if (cores := cores_of(node, "limit", self.mhz)) is not None:
            got = self._cpu(node, quota(cores))
            applied |= {"cpu_cores": got.cores, "quota_us": got.quota_us, "period_us": got.period_us}
            if self.mhz:
                applied |= {"cpu_mhz": got.cores * self.mhz, "clock_mhz": self.mhz}
        if node.memory_limit_bytes is not None:
            applied["memory_bytes"] = self._memory(node, node.memory_limit_bytes)
        if node.process_limit is not None:
            applied["processes"] = int(self._set("pids", node, "pids.max", str(node.process_limit)))
        return applied

    def _cpu(self, node: Node, asked: Quota) -> Quota:
        if self._groups.layout.version == 2:
            text = self._set("cpu", node, "cpu.max", f"{asked.quota_us} {asked.period_us}")
            return Quota(*(int(v) for v in text.split()))
        self._set("cpu", node, "cpu.cfs_period_us", str(asked.period_us))
        return Quota(int(self._set("cpu", node, "cpu.cfs_quota_us", str(asked.quota_us))), asked.period_us)

    def _memory(self, node: Node, asked: int) -> int:
        file = "memory.max" if self._groups.layout.version == 2 else "memory.limit_in_bytes"
        # The kernel rounds memory limits to whole pages.
        return int(self._set("memory", node, file, str(asked), tolerance=4096))

    def _set(self, controller: str, node: Node, name: str, text: str, tolerance: int = 0) -> str:
        file = self._groups.layout.mounts[controller] / node.cgroup / name
        try:
            file.write_text(text)
            read = file.read_text().strip()
        except OSError as error:
            raise LabError(
                f"nodes.{node.name}: {name} = {text}: the kernel refuses ({error.strerror})"
            ) from error
        asked, got = ([int(v) for v in t.split()] for t in (text, read))
        if len(asked) != len(got) or any(
            abs(a - b) >= max(1, tolerance) for a, b in zip(asked, got, strict=True)
        ):
            raise LabError(f"nodes.{node.name}: {name}: requested {text}, read back {read}")
        return read
