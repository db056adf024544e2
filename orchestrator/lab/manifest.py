"""Writes manifest.json at the start and the end of a run: topology, machine, versions, limits, warnings,
result.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contract import manifest
from contract.plan import PHASES, Plan
from orchestrator.lab.events import Events

# size of a file that is removed before the last manifest is written, so that a full disk has room for it
RESERVE_BYTES = 1 << 19


class Manifest(manifest.Manifest):
    """The manifest of the current run; `write` stores it on disk."""

    def __init__(
        self, plan: Plan, run_dir: Path, kernel: manifest.Kernel, host: dict[str, Any], driver: str
    ) -> None:
        super().__init__(
            lab=plan.lab, run=run_dir.name, driver=driver, topology=plan.topology, reference=plan.reference,
            scenario=plan.scenario, parameters=plan.parameters, seed=plan.seed, kernel=kernel,
            time=kernel.get("time", "real"), host=host, state="running",
        )  # fmt: skip
        self._run_dir = run_dir
        self._ours: list[dict[str, Any]] | None = None  # the warnings that were written last
        self._reserve = run_dir / "raw" / ".reserve"
        self._reserve.write_bytes(b"\0" * RESERVE_BYTES)

    def set_phases(
        self, plan: Plan, t0_ns: int, end_ns: int | None = None, hold_ns: int | None = None
    ) -> None:
        """Sets begin and end (ns) of ramp, hold and drain as planned from `t0_ns` on.

        end_ns: the real end of the drain, which cuts later times. hold_ns: the length of a hold that trials
        made longer than planned.
        """
        lengths = (plan.ramp_ns, plan.hold_ns if hold_ns is None else hold_ns, plan.drain_ns)
        start = t0_ns
        for name, length in zip(PHASES, lengths, strict=True):
            self.phases[name] = [start, start + length]
            start += length
        if end_ns is not None:
            for bounds in self.phases.values():
                bounds[:] = [min(b, end_ns) for b in bounds]
            self.phases["drain"][1] = end_ns
        self.t0_ns = t0_ns

    def write(self, events: Events) -> None:
        """Writes the manifest with the lab's warnings, and keeps what a reduction added to the file if the
        lab continued after it: warnings, checks and the seal.
        """
        ours = [asdict(w) for w in events.warnings]
        before = self._ours
        there = manifest.Manifest() if before is None else manifest.load(self._run_dir)
        others = [w for w in there.warnings if w not in (before or ()) and w not in ours]
        self.checks, self.inapplicable, self.sealed = there.checks, there.inapplicable, there.sealed
        self._ours = ours
        manifest.write(self._run_dir, self.contents(ours + others))

    def finish(self, events: Events, state: str, error: str | None) -> None:
        """Writes the final state; frees the reserved bytes first, so that this works on a full disk."""
        self._reserve.unlink(missing_ok=True)
        self.state, self.error = state, error
        self.write(events)


def versions(agent: str | None, programs: dict[str, list[str]]) -> dict[str, str]:
    """Returns the versions of Python, vNET, agent and programs (the first line that each prints); omits
    programs that are not installed.
    """
    found = {"python": sys.version.split()[0], "vnet": _vnet()}
    if agent:
        found["agent"] = agent
    for name, argv in programs.items():
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        except FileNotFoundError:
            continue
        said = (done.stdout + done.stderr).strip().splitlines()
        found[name] = said[0] if said else "unknown"
    return found


VERSION_COMMANDS = {
    "tcpdump": ["tcpdump", "--version"],
    "iproute2": ["ip", "-V"],
}


def _vnet() -> str:
    project = Path(__file__).parents[2] / "pyproject.toml"
    if not project.exists():
        # The import is here, because a checkout without metadata does not need it.
        from orchestrator.project import PROJECT

        project = PROJECT / "pyproject.toml"
    found = re.search(r'^version = "(.+)"', project.read_text(), re.MULTILINE) if project.exists() else None
    return found[1] if found else "unknown"


def kernel_facts() -> manifest.Kernel:
    """Returns facts of the kernel that runs the lab, from VNET_KERNEL if it is set; otherwise facts of this
    machine's kernel.
    """
    if text := os.environ.get("VNET_KERNEL"):
        told: manifest.Kernel = json.loads(text)
        return told
    return {"kind": "host", "release": os.uname().release, "why": "started by hand"}


def host_facts(cpuinfo: str, meminfo: str) -> dict[str, Any]:
    """Returns facts of the real machine, from VNET_MACHINE if it is set; otherwise from the texts of
    /proc/cpuinfo and /proc/meminfo.
    """
    if text := os.environ.get("VNET_MACHINE"):
        told: dict[str, Any] = json.loads(text)
        return told
    fields = dict(line.split(":", 1) for line in reversed(cpuinfo.splitlines()) if ":" in line)
    named = {k.strip(): v.strip() for k, v in fields.items()}
    memory = next(line for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    return {
        "cpu": named.get("model name", "unknown"), "cores": os.cpu_count(), "kernel": os.uname().release,
        "mhz": float(named["cpu MHz"]) if "cpu MHz" in named else None,
        "memory_bytes": int(memory.split()[1]) * 1024,
    }  # fmt: skip
