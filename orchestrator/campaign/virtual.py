"""Adds to a manifest of a run in virtual time the values that are hidden inside its lab.

Inside the lab everything that varies between runs is hidden from the lab process too, so its manifest says
neither where the run lies, nor on what machine it was made, nor what it was made of.
"""

from __future__ import annotations

from pathlib import Path

from contract import manifest
from orchestrator.campaign.identity import common, identical_set
from orchestrator.campaign.prepare import Prepared
from orchestrator.kernel.machine import machine
from orchestrator.kernel.virtual.kernel import VirtualKernel


def complete_manifest(run_dir: Path, prepared: Prepared) -> None:
    """Add run, real machine, why this kernel, and inputs; does nothing for a run in real time."""
    kernel = prepared.kernel
    if not isinstance(kernel, VirtualKernel) or kernel.binary is None:
        return
    manifest.outside(run_dir, prepared.why, machine(), inputs_of(prepared))


def inputs_of(prepared: Prepared) -> dict[str, str]:
    """The inputs of a run beside its plan: kernel, agent, code, each package and file of its root."""
    kernel = prepared.kernel
    assert isinstance(kernel, VirtualKernel) and kernel.binary is not None
    return common(kernel.binary.path, prepared.agent) | kernel.root(prepared.plan, prepared.agent).inputs


def record_hashes(run_dir: Path) -> None:
    """Adds the hashes of the files that equal inputs must reproduce; does nothing for a run in real time."""
    if manifest.read(run_dir).get("time") == "virtual":
        manifest.hashed(run_dir, identical_set(run_dir))
