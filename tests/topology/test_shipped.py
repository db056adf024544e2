"""Tests every shipped campaign: each of its points is valid, and a sample of its cells can be planned.

tests/cli/test_command_line.py checks the files with few runs completely.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import MANY_RUNS, TOPOLOGIES

from orchestrator.plan.build import make_plan
from orchestrator.topology import Campaign, TopologyError, load_campaign

EACH = 16  # of a large campaign, only one point in 16 is planned, because planning takes longer than checking
CAMPAIGNS = [file for file in sorted(TOPOLOGIES.rglob("*.yaml")) if file.stem in MANY_RUNS]


def planned(campaign: Campaign, each: int) -> int:
    """Plans every `each`-th cell of the first repetition, and the last one; returns their number."""
    first = [cell for cell in campaign.cells if cell.repetition == 1]
    cells = [cell for cell in first if cell.index % each == 0 or cell is first[-1]]
    for cell in cells:
        make_plan(cell.loaded, None, cell.seed)
    return len(cells)


def test_the_large_campaigns_are_there() -> None:
    assert len(CAMPAIGNS) == len(MANY_RUNS)


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_every_point_of_a_large_campaign_is_good(file: Path) -> None:
    assert planned(load_campaign(file), EACH) >= 2


@pytest.mark.sweep
@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_every_point_of_a_large_campaign_is_planned(file: Path) -> None:
    assert planned(load_campaign(file), 1) > 2


def test_one_wrong_point_among_many_is_named(tmp_path: Path) -> None:
    """Shows that the problem names point 3, whose delay conflicts with backpressure."""
    (tmp_path / "middleware.yaml").write_bytes((TOPOLOGIES / "papers/middleware.yaml").read_bytes())
    given = (("ice", 0), ("rmi", 0), ("ice", 25))
    points = "".join(f"    - {{use: {use}, delay: {delay} ms}}\n" for use, delay in given)
    file = tmp_path / "profiles.yaml"
    file.write_text(f"name: profiles\ncampaign:\n  topologies: [middleware.yaml]\n  points:\n{points}")
    with pytest.raises(TopologyError) as error:
        load_campaign(file)
    (problem,) = error.value.problems
    assert problem.path.endswith("backpressure of point 3") and "conflicts with delay" in problem.rule
