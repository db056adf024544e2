"""Tests the cells of campaigns: every combination, one order, seeds shared by the cells of a pair."""

from __future__ import annotations

from pathlib import Path

import pytest
from malformed import BASE

from orchestrator.topology import TopologyError, load_campaign

SHIPPED = Path(__file__).parents[2] / "topologies" / "mqtt-qos-campaign.yaml"


def test_the_shipped_campaign() -> None:
    campaign = load_campaign(SHIPPED, {"hold": "60s"})
    assert len(campaign.cells) == 2 * 3 * 5
    assert [cell.index for cell in campaign.cells] == list(range(30))
    assert len({cell.name for cell in campaign.cells}) == 30
    assert {cell.parameters["hold"] for cell in campaign.cells} == {"60 s"}
    first = [(Path(cell.topology).stem, cell.levels["qos"]) for cell in campaign.cells[:6]]
    assert first == [(t, q) for t in ("mqtt-many-to-one", "mqtt-many-to-many") for q in (0, 1, 2)]


def test_seeds_pair_across_cells_and_differ_between_repetitions() -> None:
    cells = load_campaign(SHIPPED).cells
    by_repetition = {cell.repetition: cell.seed for cell in cells}
    assert all(cell.seed == by_repetition[cell.repetition] for cell in cells)
    assert len(set(by_repetition.values())) == 5


def test_a_topology_may_hold_its_campaign(tmp_path: Path) -> None:
    path = tmp_path / "base.yaml"
    path.write_text(BASE + "campaign: {factors: {clients: [2, 4], hold: [10 s, 20 s]}, repetitions: 2}\n")
    cells = load_campaign(path).cells
    assert [(c.levels["clients"], c.levels["hold"], c.seed) for c in cells] == [
        (2, "10 s", 1), (2, "20 s", 1), (4, "10 s", 1), (4, "20 s", 1),
        (2, "10 s", 2), (2, "20 s", 2), (4, "10 s", 2), (4, "20 s", 2),
    ]  # fmt: skip
    assert [c.loaded.model.groups["client"].count for c in cells[:3]] == [2, 2, 4]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("name: c\n", "holds no campaign"),
        ("name: c\ncampaign: {}\n", "names no topology"),
        ("name: c\ncampaign: {topologies: []}\n", "must have at least 1 items"),
        ("name: c\ncampaign: {topologies: [absent.yaml]}\n", "cannot be read"),
        (
            "name: c\ncampaign: {topologies: [base.yaml], factors: {nodes: [1]}}\n",
            "no parameter has this name",
        ),
        ("name: c\ncampaign: {topologies: [base.yaml], factors: {clients: [1, 99]}}\n", "must be at most 9"),
        (
            "name: c\ncampaign: {topologies: [base.yaml], factors: {clients: [[1]]}}\n",
            "a level is a single value",
        ),
        ("name: c\ncampaign: {topologies: [base.yaml], repeat: 3}\n", "is not a key here"),
        ("name: c\ncampaign: {topologies: [base.yaml, base.yaml]}\n", "topologies[1]"),
        (
            "name: c\ncampaign: {topologies: [base.yaml], factors: {clients: [1, 2, 1]}}\n",
            "campaign.factors.clients[2]: 1: stands twice; remove one of them",
        ),
        (
            f"name: c\ncampaign: {{topologies: [base.yaml], factors: {{clients: {list(range(10_001))}}}}}\n",
            "10001 cells are more than 10000",
        ),
        (
            "name: c\ncampaign: {points: [{topology: base.yaml, clients: 2}], "
            f"factors: {{hold: {list(range(10_001))}}}}}\n",
            "10001 cells are more than 10000",
        ),
    ],
)
def test_refused(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(TopologyError) as caught:
        load_campaign(path)
    assert rule in str(caught.value)


def test_a_factor_cannot_be_overridden() -> None:
    with pytest.raises(TopologyError, match="is a factor, and -p sets it too"):
        load_campaign(SHIPPED, {"qos": "1"})
