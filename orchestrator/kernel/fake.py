"""Lab kernel `fake`: the real lab process with a driver that makes nothing, to test what surrounds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.kernel.detached import DetachedLab, lab_arguments, lab_environment, spawn
from orchestrator.kernel.facts import HostFacts
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.machine import machine
from orchestrator.kernel.protocol import Launch, Missing
from orchestrator.plan.codec import to_json
from orchestrator.plan.model import Plan


class FakeKernel(HostKernel):
    """Never chosen by itself: the figures of its runs are invented, and the manifest says so."""

    name = "fake"

    def __init__(self) -> None:
        super().__init__(HostFacts("none", root=False, namespaces=None), _fake_lab)

    def start(self, launch: Launch) -> DetachedLab:
        """Start the lab process; it says in its manifest what it is."""
        launch.run_dir.mkdir(parents=True, exist_ok=True)
        (launch.run_dir / "plan.json").write_text(to_json(launch.plan))
        kernel = {"kind": "fake", "release": "none", "why": self.why}
        return spawn(
            [sys.executable, *self.payload(launch, launch.state_dir)],
            launch.run_dir,
            launch.state_dir / "control.sock",
            log="lab.log",
            env=lab_environment(os.environ, kernel, machine()),
            lifeline=False,
        )

    def can(self, plan: Plan) -> list[Missing]:
        """Everything: nothing is made."""
        return []

    def describe(self) -> str:
        """That it is none."""
        return "fake (no kernel; figures are invented)"


def _fake_lab(launch: Launch, state_dir: Path) -> Sequence[str]:
    return [*lab_arguments(launch, state_dir, launch.agent), "--driver", "fake"]
