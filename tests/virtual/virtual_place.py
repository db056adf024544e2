"""Runs a small lab in virtual time through the real command line, in a directory of the test's choice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import is_ours

PROJECT = Path(__file__).resolve().parents[2]
SMALL = """\
name: small
seed: 1
segments:
  left: {subnet: 10.50.0.0/24}
  right: {subnet: 10.50.0.0/24}
nodes:
  broker: {segment: right, software: {mosquitto: {broker: mosquitto}}}
  ear: {segment: right, software: {ear: {mqtt: {broker: broker, subscribe: [{topic: "t/#", qos: 1}]}}}}
groups:
  mouth:
    count: 2
    segment: left
    software: {mouth: {mqtt: {broker: broker, publish: {topic: "t/{index}", qos: 1, rate: 20 /s}}}}
links:
  wan: {between: [left, right], both: {delay: 10 ms, jitter: 2 ms, loss: 2 %}}
captures:
  all: {at: node broker}
run: {connect_interval: 100 ms, hold: 3 s, drain: 5 s}
"""


@dataclass(frozen=True)
class Ran:
    """A run: its directory, the command's output, and its duration."""

    run_dir: Path
    said: str

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run_dir / "manifest.json").read_text())
        return found

    @property
    def hashes(self) -> dict[str, str]:
        found: dict[str, str] = self.manifest["hashes"]
        return found


@dataclass
class Place:
    """A directory for runs, with the topology, results and state."""

    cwd: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cwd.mkdir(parents=True, exist_ok=True)
        if not (self.cwd / "small.yaml").exists():
            (self.cwd / "small.yaml").write_text(SMALL)

    def environment(self) -> dict[str, str]:
        state = {"VNET_STATE_DIR": str(self.cwd / "state")}
        return {**os.environ, **state, "COLUMNS": "110", **self.env}

    def vnet(
        self, *arguments: str, before: tuple[str, ...] = (), timeout_s: float = 1000.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command line in a process of its own; `before` is a program that starts it."""
        argv = [*before, sys.executable, "-m", "orchestrator.cli.main", *arguments]
        return subprocess.run(
            argv,
            cwd=self.cwd,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Starts the command line as `vnet` does, without waiting for it."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "orchestrator.cli.main", *arguments],
            cwd=self.cwd,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        *more: str,
        seed: int = 7,
        before: tuple[str, ...] = (),
        file: str = "small.yaml",
        status: int = 0,
    ) -> Ran:
        """Makes a run in virtual time, without tables and page unless `more` has other options; asserts the
        exit status.
        """
        options = more or ("--raw",)
        done = self.vnet(
            "run",
            file,
            "--time",
            "virtual",
            "--seed",
            str(seed),
            "--results",
            "out",
            "--json",
            *options,
            before=before,
        )
        assert done.returncode == status, done.stderr
        return Ran(self.cwd / json.loads(done.stdout)["run_dir"], done.stderr)


def kernel_missing() -> str | None:
    """Returns the reason why nothing can run in virtual time here; None if it can."""
    if not any(is_ours(binary.path) for binary in find_binaries()):
        return "the lab's own kernel is not built; make kernel"
    missing = [tool for tool in ("mosquitto", "tcpdump", "ip", "tc") if shutil.which(tool) is None]
    return f"{missing[0]} is not installed" if missing else None
