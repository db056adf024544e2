"""Runs the real command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TOPOLOGIES = PROJECT / "topologies"


@dataclass
class CommandLine:
    """Runs `vnet` in `cwd`, with a state directory of the test's own."""

    cwd: Path
    state: Path
    more: dict[str, str] = field(default_factory=dict)
    patience_s: float = 100
    site: tuple[Path, ...] = ()  # directories with packages beside the installed ones

    @property
    def env(self) -> dict[str, str]:
        agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
        return {**os.environ, "VNET_STATE_DIR": str(self.state), "COLUMNS": "110", **agent, **self.more}

    @property
    def path(self) -> str:
        return os.pathsep.join(map(str, (PROJECT, *self.site)))

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "orchestrator.cli.main", *arguments]

    def __call__(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.argv(*arguments),
            cwd=self.cwd,
            env=self.env | {"PYTHONPATH": self.path},
            capture_output=True,
            text=True,
            timeout=self.patience_s,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=self.cwd,
            env=self.env | {"PYTHONPATH": self.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def labs(self) -> Sequence[str]:
        return [d.name for d in self.state.iterdir()] if self.state.is_dir() else []
