"""Tests the order of a campaign's runs: each repetition is a block, listed or shuffled by the seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from malformed import BASE

from orchestrator.topology import TopologyError, load_campaign, load_cell
from orchestrator.topology.blocks import block

SETTINGS = [f"setting {number}" for number in range(20)]


def campaign(tmp_path: Path, block: str, seed: int = 1) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "campaign.yaml"
    path.write_text(f"name: c\nseed: {seed}\ncampaign:\n  topologies: [base.yaml]\n{block}\n")
    return path


def test_a_listed_block_is_in_the_order_of_the_file() -> None:
    assert block("listed", SETTINGS, 1, 1) == list(range(20))


def test_a_random_block_has_each_setting_once_in_an_order_of_its_own() -> None:
    orders = [block("random", SETTINGS, seed, repetition) for seed in (1, 2) for repetition in (1, 2, 3)]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert len({tuple(order) for order in orders}) == 6
    assert block("random", SETTINGS, 1, 1) == orders[0], "the seed fixes it"


def test_every_setting_is_about_as_often_early_as_late() -> None:
    first = [block("random", SETTINGS, 1, repetition).index(0) for repetition in range(1, 401)]
    assert 8.5 < sum(first) / 400 < 10.5, "9.5, with a standard error of 0.29"


def test_a_further_level_leaves_the_order_of_the_others() -> None:
    few, many = block("random", SETTINGS[:10], 1, 1), block("random", SETTINGS, 1, 1)
    assert [index for index in many if index < 10] == few


def test_a_campaign_shuffles_within_its_repetitions_alone(tmp_path: Path) -> None:
    factors = "  factors: {clients: [1, 2, 3, 4, 5, 6]}\n  repetitions: 3"
    listed = load_campaign(campaign(tmp_path, factors)).cells
    cells = load_campaign(campaign(tmp_path, f"{factors}\n  order: random")).cells
    assert [cell.repetition for cell in cells] == [1] * 6 + [2] * 6 + [3] * 6
    assert {cell.name for cell in cells} == {cell.name for cell in listed}
    assert [cell.name for cell in cells] != [cell.name for cell in listed]
    path = str(tmp_path / "campaign.yaml")
    assert all(load_cell(path, {}, cell.index).name == cell.name for cell in cells[:3])
    other = load_campaign(campaign(tmp_path, f"{factors}\n  order: random", seed=2)).cells
    assert [cell.levels for cell in other] != [cell.levels for cell in cells]


def test_an_unknown_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"campaign\.order"):
        load_campaign(campaign(tmp_path, "  order: shuffled"))
