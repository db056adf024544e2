"""Sets CPU limits and reservations of virtual machines through libvirt's <cputune>, at the start and while
they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.plan import Node
from orchestrator.lab import cgroup
from orchestrator.lab.errors import LabError
from orchestrator.lab.limits import SHARES_PER_CORE, Quota, cores_of, quota, weights
from orchestrator.lab.vm.connection import controllers, said

NO_QUOTA = -1


def partition(lab: str) -> str:
    """Returns the lab's resource partition for <resource>; libvirt adds `.partition` to its directories."""
    return f"/vnet/{lab}"


def directories(lab: str) -> list[Path]:
    """Returns the partition's directory in each control group tree that libvirt uses: those of its
    controllers, and cgroup2.
    """
    layout, lines = cgroup.this_machine(), Path("/proc/self/mounts").read_text().splitlines()
    unified = [Path(line.split()[1]) for line in lines if line.split()[2] == "cgroup2"]
    roots = dict.fromkeys([*layout.roots(["cpu", "cpuacct"]), *unified])
    return [root / "vnet.partition" / f"{lab}.partition" for root in roots]


def make_partition(lab: str) -> bool:
    """Makes the lab's control groups, which libvirt requires; returns False, without making any, if this
    machine has no cpu controller.
    """
    if not controllers():
        return False
    for directory in directories(lab):
        directory.mkdir(parents=True, exist_ok=True)
    if cgroup.this_machine().version == 2:
        for directory in directories(lab):
            for group in (directory.parent.parent, directory.parent, directory):
                (group / "cgroup.subtree_control").write_text("+cpu")
    return True


def weigh_partition(lab: str, machines: int) -> None:
    """Sets the weight of the lab's control group to the sum of its machines' weights, and that of vNET's
    group to the sum of its labs'.

    A control group counts as one process against its neighbours: 20 machines in a group of the usual weight
    would share the CPU time of a single program on a busy host.
    """
    layout = cgroup.this_machine()
    file, each, most = ("cpu.weight", 100, 10_000) if layout.version == 2 else ("cpu.shares", 1024, 262_144)
    top = layout.mounts["cpu"] / "vnet.partition"
    (top / f"{lab}.partition" / file).write_text(str(min(most, max(1, machines) * each)))
    together = sum(int(f.read_text()) for f in top.glob(f"*.partition/{file}"))
    (top / file).write_text(str(min(most, together)))


def remove_partition(lab: str) -> None:
    """Removes the lab's control groups, and vNET's if no other lab has one."""
    for directory in directories(lab):
        cgroup.remove_tree(directory)
        cgroup.remove_if_empty(directory.parent)


@dataclass
class VmLimits:
    """The CPU limits of each machine, by node: stored before it starts, changed while it runs."""

    cores: int
    mhz: float | None
    libvirt: Any
    asked: dict[str, tuple[Quota | None, int | None]] = field(default_factory=dict)

    def plan(self, nodes: Sequence[Node], everyone: Sequence[Node]) -> dict[str, dict[str, Any]]:
        """Stores the quota of `nodes` and the shares of `everyone` for their start; returns the values of all
        nodes that have some. Raises LabError if this machine cannot limit CPU.
        """
        reserved = {n.name: cores_of(n, "reserve", self.mhz) for n in everyone}
        shares = weights(reserved, self.cores, SHARES_PER_CORE, 2)
        quotas = {n.name: self._quota(n) for n in nodes}
        if not controllers() and (shares or any(quotas.values())):
            raise LabError(
                f"nodes.{nodes[0].name}: CPU limit or reservation: needs the cpu controller, which this "
                "machine's control groups do not offer; mount it, or leave the limit out"
            )
        for node in everyone:
            before = self.asked.get(node.name, (None, None))[0]
            self.asked[node.name] = quotas.get(node.name, before), shares.get(node.name)
        return {n.name: self._words(n.name) for n in everyone if self._words(n.name)}

    def _quota(self, node: Node) -> Quota | None:
        cores = cores_of(node, "limit", self.mhz)
        return None if cores is None else quota(cores)

    def _words(self, name: str) -> dict[str, Any]:
        limit, shares = self.asked[name]
        found: dict[str, Any] = {}
        if limit is not None:
            found |= {"cpu_cores": limit.cores, "quota_us": limit.quota_us, "period_us": limit.period_us}
            if self.mhz:
                found |= {"cpu_mhz": limit.cores * self.mhz, "clock_mhz": self.mhz}
        return found | ({"weight": shares} if shares is not None else {})

    def apply(self, name: str, domain: Any) -> None:
        """Sets the stored limits of a running machine and reads them back; does nothing without limits.
        Raises LabError if libvirt refuses or reports other values.
        """
        limit, shares = self.asked.get(name, (None, None))
        if limit is None and shares is None:
            return
        wanted: dict[str, int] = {}
        if limit is not None:
            wanted |= {"global_period": limit.period_us, "global_quota": limit.quota_us}
        if shares is not None:
            wanted["cpu_shares"] = shares
        live = self.libvirt.VIR_DOMAIN_AFFECT_LIVE
        try:
            domain.setSchedulerParametersFlags(wanted, live)
            read = domain.schedulerParametersFlags(live)
        except self.libvirt.libvirtError as error:
            raise LabError(f"nodes.{name}: CPU limit {wanted}: libvirt refuses: {said(error)}") from error
        wrong = {k: (v, read.get(k)) for k, v in wanted.items() if abs(read.get(k, NO_QUOTA) - v) > 1}
        if wrong:
            raise LabError(f"nodes.{name}: CPU limit: (requested, read back): {wrong}")
