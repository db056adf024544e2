"""Everything before the first change: check the file, plan it, see that it fits, choose the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.kernel.protocol import LabKernel, Launch
from orchestrator.plan.model import Plan


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
    """A run that could begin: nothing has been made yet. `why` this kernel; `svg`: the topology drawn."""

    request: Request
    plan: Plan
    kernel: LabKernel
    why: str
    svg: str

    def write_inputs(self, run_dir: Path) -> None:
        """Put the topology file as it was, its drawing and the plan into the run directory."""
        from orchestrator.plan.codec import to_json

        (run_dir / "topology.yaml").write_bytes(self.request.file.read_bytes())
        (run_dir / "topology.svg").write_text(self.svg)
        (run_dir / "plan.json").write_text(to_json(self.plan, indent=1))
