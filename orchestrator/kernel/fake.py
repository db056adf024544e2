"""Lab kernel `fake`: runs the real lab process with a driver that creates nothing, to test everything around
a lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel import lab_command, limits
from orchestrator.kernel.facts import HostFacts
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.protocol import Fit, Launch, Missing, Wish
from orchestrator.plan.nics import uses_nics


class FakeKernel(HostKernel):
    """The kernel `fake`, which is used only on request: the figures of its runs are invented, and the
    manifest says so.
    """

    name = "fake"

    def __init__(self) -> None:
        super().__init__(HostFacts("none", root=False, namespaces=None), _fake_lab)

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether this machine is large enough for the plan; link impairments need no netem here."""
        return limits.fit(plan, self.can(plan), self.name, wish.out)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns what the plan needs and this kernel lacks: only real NICs, since it creates nothing."""
        return [Missing("NICs of the machine", "it has none", "", "host")] * uses_nics(plan)

    def describe(self) -> str:
        """Returns the name of the kernel with the note that figures are invented."""
        return "fake (no kernel; figures are invented)"


def _fake_lab(launch: Launch, state_dir: Path) -> Sequence[str]:
    return [*lab_command.arguments(launch, state_dir, launch.agent), "--driver", "fake"]
