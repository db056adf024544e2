"""Tests the outcome of a trial on a synthetic run: the trial holds only if its run is not suspect."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reports"))

from synthetic import write_run
from synthetic_shape import Shape

from orchestrator.hunt.trials import judged


@pytest.mark.parametrize(("suspect", "state"), [(False, "holds"), (True, "cannot tell")])
def test_a_suspect_run_does_not_hold(tmp_path: Path, suspect: bool, state: str) -> None:
    outcome = judged(write_run(tmp_path / "run", Shape(suspect=suspect)))
    assert outcome.state == state
    assert [why.startswith("the run is suspect: ") for why in outcome.why] == [True] * suspect
