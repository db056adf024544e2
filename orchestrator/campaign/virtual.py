"""The part of a manifest that only the outside of a run in virtual time knows.

Inside the lab everything that varies between runs is hidden from the lab process too, so its manifest says
neither where the run lies, nor on what machine it was made, nor what it was made of.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.campaign.identity import identical_set, inputs
from orchestrator.campaign.prepare import Prepared
from orchestrator.kernel.machine import machine
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.lab.state import replace


def complete_manifest(run_dir: Path, prepared: Prepared) -> None:
    """Add run, real machine, why this kernel, and inputs; does nothing for a run in real time."""
    kernel = prepared.kernel
    if not isinstance(kernel, VirtualKernel) or kernel.binary is None:
        return
    manifest = _read(run_dir)
    manifest.setdefault("kernel", {})["why"] = prepared.why
    manifest |= {
        "run": run_dir.name,
        "machine": machine(),
        "inputs": inputs(kernel.binary.path, prepared.agent),
    }
    _write(run_dir, manifest)


def record_hashes(run_dir: Path) -> None:
    """Add the hashes of what the same inputs must give again; does nothing for a run in real time."""
    manifest = _read(run_dir)
    if manifest.get("time") == "virtual":
        _write(run_dir, manifest | {"hashes": identical_set(run_dir)})


def _read(run_dir: Path) -> dict[str, Any]:
    path = run_dir / "manifest.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _write(run_dir: Path, manifest: dict[str, Any]) -> None:
    replace(run_dir / "manifest.json", json.dumps(manifest, indent=1) + "\n")
