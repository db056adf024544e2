"""Tests that other programs in a lab in virtual time measure the same as vNET (docs/fidelity.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_place import PROJECT


@pytest.mark.sweep
@pytest.mark.slow
def test_other_programs_measure_the_same_in_virtual_time(tmp_path: Path) -> None:
    out = tmp_path / "fidelity.md"
    script = PROJECT / "bench" / "fidelity_page.py"
    argv = [sys.executable, str(script), "--columns", "virtual", "--out", str(out)]
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert out.exists(), done.stderr
    assert done.returncode == 0, out.read_text() + done.stderr
