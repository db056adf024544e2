"""Lab kernels on this machine: `host`, the machine's own kernel, for root, if it meets the plan's needs; and
`fake`, for tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from contract import rundir
from contract.plan import Plan
from orchestrator.kernel import detached, lab_command, limits, virtual_machines
from orchestrator.kernel.facts import HostFacts, host_facts
from orchestrator.kernel.needs import Needs, needs_of, netem_placed, wrong_machines
from orchestrator.kernel.protocol import Fit, LabKernel, Launch, Missing, Wish
from orchestrator.plan.nics import uses_nics

ROOT_REMEDY = "run as root"
MODULE_REMEDY = "install a kernel that has it (linux-image-amd64 of Debian does)"
OTHER = "uml"  # the kernel that has a root, namespaces, controllers and kinds of its own
PACKAGES = {
    "ip": "iproute2", "tc": "iproute2", "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils",
}  # fmt: skip
LabCommand = Callable[[Launch, Path], Sequence[str]]


def handed(base: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the user's environment variables that a lab on the machine itself needs: the place of
    disks and, for captures that are sent to other machines, ssh's command and agent.
    """
    return {name: base[name] for name in ("VNET_DISK_DIR", "VNET_SSH", "SSH_AUTH_SOCK") if name in base}


def lab_on_host(launch: Launch, state_dir: Path) -> Sequence[str]:
    """Returns the arguments of the Python interpreter that runs the lab process."""
    return lab_command.arguments(launch, state_dir, launch.agent)


class HostKernel(LabKernel):
    """The kernel of this machine.

    For tests, `payload` replaces the command of the lab process, `facts` the machine's facts, and `images`
    the search for the plan's missing images.
    """

    name = "host"

    def __init__(
        self,
        facts: HostFacts | None = None,
        payload: LabCommand = lab_on_host,
        why: str = "asked for",
        images: Callable[[Plan], list[Missing]] = virtual_machines.missing_images,
    ) -> None:
        self.facts = host_facts() if facts is None else facts
        self.described = f"host (Linux {self.facts.kernel})"
        self.payload = payload
        self.why = why
        self.images = images

    @classmethod
    def of(cls, plan: Plan, wish: Wish) -> Self:
        """Returns the kernel of this machine. It does not check for images if they arrive later
        (wish.carried).
        """
        kernel = cls()
        if wish.carried:
            kernel.images = lambda _: []
        return kernel

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether this machine's kernel can carry the plan, with netem in bridge VMs if the kernel
        has none and the plan has virtual machines.
        """
        placed = netem_placed(plan, wish.bridged, self.facts.lacks)
        return limits.fit(placed, self.can(placed), self.name, wish.out)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs of `plan` that the machine does not meet. Without root, that is only root;
        without network namespaces, only these; else kinds of qdisc and link, cgroup controllers, tools,
        images.
        """
        if not self.facts.root:
            return [Missing("root", "namespaces, links and control groups are made", ROOT_REMEDY, OTHER)]
        if self.facts.namespaces is not None:
            return [Missing("network namespaces", self.facts.namespaces, ROOT_REMEDY, OTHER)]
        found = missing_for(self.facts, needs_of(plan)) + virtual_machines.missing(plan)
        return found + self.images(plan) + wrong_machines(plan)

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Writes the plan into the run directory, starts the lab process in a session of its own and returns
        its handle. Raises KernelError if the control socket's path is too long.
        """
        control = detached.control_socket(launch.state_dir)
        rundir.write_plan(launch.run_dir, launch.plan)
        kernel = {"kind": self.name, "release": self.facts.kernel, "why": self.why}
        return detached.spawn(
            [sys.executable, *self.payload(launch, launch.state_dir)],
            launch.run_dir,
            control,
            logs=["lab.log"],
            env=handed(os.environ) | lab_command.environment(os.environ, kernel, url=launch.machine),
            lifeline=False,
        )


class FakeKernel(HostKernel):
    """The kernel `fake`: runs the real lab process with a driver that creates nothing, to test everything
    around a lab. A user must request it, since the figures of its runs are invented; the manifest states
    that.
    """

    name = "fake"

    def __init__(self) -> None:
        super().__init__(HostFacts("none", root=False, namespaces=None), _fake_lab)
        self.described = "fake (no kernel; figures are invented)"

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether this machine is large enough for the plan. The fake driver shapes no packets, so
        links need no netem.
        """
        return limits.fit(plan, self.can(plan), self.name, wish.out)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs of the plan that this kernel lacks: only those that need real programs or
        devices.
        """
        nics = [Missing("NICs of the machine", "it has none", "", "host")] * uses_nics(plan)
        return nics + wrong_machines(plan)


def _fake_lab(launch: Launch, state_dir: Path) -> Sequence[str]:
    return [*lab_on_host(launch, state_dir), "--driver", "fake"]


def missing_for(facts: HostFacts, needs: Needs) -> list[Missing]:
    """Returns the needs that the facts do not meet, each with the part of the plan that causes it."""
    missing = []
    for kind, reason in needs.kinds.items():
        if (refusal := facts.lacks(kind)) is not None:
            missing.append(
                Missing(f"{kind} in the kernel", f"{reason}; tried: {refusal}", MODULE_REMEDY, OTHER)
            )
    for controller, reason in needs.controllers.items():
        if controller not in facts.controllers:
            remedy = f"mount the {controller} controller (vnet doctor says how)"
            missing.append(Missing(f"cgroup controller {controller}", reason, remedy, OTHER))
    for tool, reason in needs.tools.items():
        if facts.tools.get(tool) is None:
            package = PACKAGES.get(tool, tool)
            missing.append(Missing(tool, reason, f"apt-get install {package}"))
    return missing
