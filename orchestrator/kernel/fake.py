"""Lab kernel `fake`: the real lab process with a driver that makes nothing, to test everything around a
lab.
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
    """The kernel `fake`. It must be requested: the figures of its runs are invented, and the manifest records
    that.
    """

    name = "fake"

    def __init__(self) -> None:
        super().__init__(HostFacts("none", root=False, namespaces=None), _fake_lab)

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Whether this machine is large enough for the plan; netem need not be placed."""
        return limits.fit(plan, self.can(plan), self.name, wish.out)

    def can(self, plan: Plan) -> list[Missing]:
        """Supports everything except real NICs, since it makes nothing."""
        return [Missing("NICs of the machine", "it has none", "", "host")] * uses_nics(plan)

    def describe(self) -> str:
        """Describes it as no kernel."""
        return "fake (no kernel; figures are invented)"


def _fake_lab(launch: Launch, state_dir: Path) -> Sequence[str]:
    return [*lab_command.arguments(launch, state_dir, launch.agent), "--driver", "fake"]
