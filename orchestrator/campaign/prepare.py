"""Everything before the first change: check the file, plan it, choose the kernel, see that it fits."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.campaign.facts import facts
from orchestrator.kernel.choose import choose
from orchestrator.kernel.fake import FakeKernel
from orchestrator.kernel.protocol import KernelError, LabKernel, Launch
from orchestrator.lab.state import state_root
from orchestrator.plan.build import make_plan
from orchestrator.plan.capacity import problems
from orchestrator.plan.graph import GraphError, graph
from orchestrator.plan.model import Plan
from orchestrator.topology import Topology, TopologyError, load

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Request:
    """What is asked: a topology file with its parameters (texts, as `-p` gives them) and how to run it."""

    file: Path
    parameters: Mapping[str, Any]
    seed: int | None = None
    kernel: str = "auto"
    lab: str | None = None


@dataclass(frozen=True)
class Prepared:
    """A run that could begin: nothing has been made yet. `why`: this kernel and no other."""

    request: Request
    plan: Plan
    kernel: LabKernel
    why: str
    agent: Path

    def launch(self, run_dir: Path, *, scenario: bool, keep: bool = False) -> Launch:
        """The lab of this plan, writing to `run_dir` (made, empty), which is given the inputs first."""
        (run_dir / "topology.yaml").write_bytes(self.request.file.read_bytes())
        state = state_root() / self.plan.lab
        return Launch(self.plan, run_dir.resolve(), state, self.agent, scenario, keep)

    def draw(self, run_dir: Path) -> threading.Thread:
        """Begin to draw the topology into `run_dir` while the lab is made; join it to have it whole."""
        drawing = threading.Thread(target=_draw, args=(self.plan, run_dir / "topology.svg"))
        drawing.start()
        return drawing


def prepare(request: Request, out: Path, topology: Topology | None = None) -> Prepared:
    """Check, plan and choose; `out` is where the run will write, `topology` the file if it has been read.

    Raises TopologyError for the file or where it does not fit this machine, KernelError for the machine.
    """
    plan = make_plan(topology or load(request.file, request.parameters), request.lab, request.seed)
    choice = choose(plan, request.kernel, [FakeKernel()] if request.kernel == "fake" else None)
    if found := problems(plan, facts(choice.kernel.name, out)):
        raise TopologyError(found)
    return Prepared(request, plan, choice.kernel, choice.why, agent_binary())


def _draw(plan: Plan, path: Path) -> None:
    try:
        path.write_text(graph(plan))
    except (GraphError, OSError):
        path.unlink(missing_ok=True)  # a run is worth having without it; `vnet graph` says what is missing


def agent_binary() -> Path:
    """The nodes' agent: $VNET_AGENT, else the project's release build, else the one on the PATH."""
    if given := os.environ.get("VNET_AGENT"):
        if not os.access(given, os.X_OK):
            raise KernelError(f"VNET_AGENT={given}: no program is there; unset it or build the agent")
        return Path(given).resolve()
    built = PROJECT / "target" / "release" / "vnet-agent"
    found = str(built) if built.exists() else shutil.which("vnet-agent")
    if found is None:
        raise KernelError(f"{built}: the agent is not built; run `make setup` in {PROJECT}")
    return Path(found)
