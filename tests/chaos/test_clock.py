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
from typing import Any

import pytest
from cases import BROKEN
from faults import Clock

from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.uml.kernel import UmlKernel, cleanup_uml

sys.path.append(str(Path(__file__).parents[1] / "kernel"))
from kernel_plans import plan

INSIDE = Path(__file__).with_name("clock_inside.py")
STEPS_INSIDE = Path(__file__).with_name("clock_steps_inside.py")
CASES = int(os.environ.get("VNET_CLOCK_CASES", "1"))
SEED = os.environ.get("VNET_CLOCK_SEED", "0")


def test_a_machine_that_is_no_guest_keeps_its_clock() -> None:
    with pytest.raises(PermissionError, match="is not set for a test"):
        Clock(1).meanwhile(list)


def of_guest(folder: Path, script: Path, *arguments: str) -> list[dict[str, Any]]:
    """Runs a script in a guest and returns the lines of JSON that it wrote to the file it was given first."""
    state = Path(tempfile.mkdtemp(prefix="vk")) / "pair"
    results = folder / "run" / "outcomes.jsonl"

    def inside(launch: Launch, guest_state: Path) -> list[str]:
        return [str(script), str(results), *arguments]

    try:
        launch = Launch(plan(), folder / "run", state, Path("/bin/true"), scenario=False)
        said = list(UmlKernel(find_binaries()[:1], inside).start(launch).events())
        assert results.exists(), said
        return [json.loads(line) for line in results.read_text().splitlines()]
    finally:
        cleanup_uml(state)
        shutil.rmtree(state.parent, ignore_errors=True)


@pytest.mark.uml
@pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel: apt-get install user-mode-linux")
def test_small_steps_are_found_and_slews_are_none(tmp_path: Path) -> None:
    """Shows that a step of 5 ms or more marks a run, and that NTP's change of the rate does not, because it
    changes the lab's clock and the clock of captures equally. On a busy machine, a guest's reading of both
    clocks may take so long that it hides a step of 1 or 2 ms.
    """
    *steps, slewed = of_guest(tmp_path, STEPS_INSIDE)
    assert {abs(line["step_ms"]) for line in steps} == {5, 10, 20, 50}
    for line in steps:
        assert len(line["said"]) == 1, line
        by_ms = float(line["said"][0].split("set by ")[1].split(" ")[0]) * 1e3
        assert abs(by_ms - line["step_ms"]) < 1.5, line
    assert slewed == {"step_ms": 0, "said": []}


@pytest.mark.uml
@pytest.mark.timeout(0 if "VNET_CLOCK_CASES" in os.environ else 300)
@pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel: apt-get install user-mode-linux")
def test_what_a_clock_that_is_set_does_to_commands(tmp_path: Path) -> None:
    """Shows that each command ends in time, leaves nothing behind and loses no data while the clock is set,
    and that a run with misdated packets is marked.
    """
    lines = of_guest(tmp_path, INSIDE, SEED, str(CASES))
    assert len(lines) == CASES
    assert not [line for line in lines if line["outcome"].startswith(BROKEN)], lines
    for line in lines:
        print(line)
