"""Tests that virtual time gives the results of real time, within the bounds of docs/virtual-time.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.virtual.kernel import VirtualKernel

PROJECT = Path(__file__).resolve().parents[2]
SUSPECT = 3

pytestmark = [
    pytest.mark.uml,
    pytest.mark.slow,
    pytest.mark.skipif(
        VirtualKernel().binary is None, reason="the lab's own kernel is not built (make kernel)"
    ),
]


def compared(tmp_path: Path, *arguments: str) -> None:
    argv = [sys.executable, str(PROJECT / "bench" / "fidelity.py"), *arguments]
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    if done.returncode == SUSPECT:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr


def test_against_the_same_kernel_in_real_time(tmp_path: Path) -> None:
    compared(tmp_path)


@pytest.mark.sweep
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="labs in the machine's own kernel need root")
def test_against_the_machines_own_kernel(tmp_path: Path) -> None:
    """Compares the same lab without impairments with the machine's own kernel."""
    compared(tmp_path, "--plain")
