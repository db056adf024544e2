"""Tests commands while the clock is set an hour forward or back, in a guest, because only a guest's clock may
be changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from cases import BROKEN
from faults import Clock

from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.uml.kernel import UmlKernel, cleanup_uml

sys.path.append(str(Path(__file__).parents[1] / "kernel"))
from kernel_plans import plan

INSIDE = Path(__file__).with_name("clock_inside.py")
CASES = int(os.environ.get("VNET_CLOCK_CASES", "1"))
SEED = os.environ.get("VNET_CLOCK_SEED", "0")


def test_a_machine_that_is_no_guest_keeps_its_clock() -> None:
    with pytest.raises(PermissionError, match="is not set for a test"):
        Clock(1).meanwhile(list)


@pytest.mark.uml
@pytest.mark.timeout(0 if "VNET_CLOCK_CASES" in os.environ else 300)
@pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel: apt-get install user-mode-linux")
def test_what_a_clock_that_is_set_does_to_commands(tmp_path: Path) -> None:
    """Shows that each command ends in time and leaves and loses nothing, and that a run with misdated packets
    is marked.
    """
    state = Path(tempfile.mkdtemp(prefix="vk")) / "pair"
    results = tmp_path / "run" / "outcomes.jsonl"

    def inside(launch: Launch, guest_state: Path) -> list[str]:
        return [str(INSIDE), str(results), SEED, str(CASES)]

    try:
        launch = Launch(plan(), tmp_path / "run", state, Path("/bin/true"), scenario=False)
        lab = UmlKernel(find_binaries()[:1], inside).start(launch)
        said = list(lab.events())
        lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        assert len(lines) == CASES, said
        assert not [line for line in lines if line["outcome"].startswith(BROKEN)], lines
        for line in lines:
            print(line)
    finally:
        cleanup_uml(state)
        shutil.rmtree(state.parent, ignore_errors=True)
