"""Tests the points of campaigns: listed, or sampled from ranges by a seed; each with every topology and
level.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malformed import BASE

from orchestrator.language import units
from orchestrator.topology import TopologyError, load, load_campaign, load_cell
from orchestrator.topology.design import sampled
from orchestrator.topology.document import Axis, Design

ATLAS = Path(__file__).parents[2] / "topologies" / "atlas"
Method = Literal["latin-hypercube", "halton"]


def design(count: int, method: Method = "halton", seed: int = 1, skip: int = 0, **axes: Any) -> Design:
    written = axes or {"rate": {"from": "50 kbit/s", "to": "10 Mbit/s", "scale": "log"}}
    made = {name: Axis.model_validate(axis) for name, axis in written.items()}
    return Design(method=method, points=count, seed=seed, skip=skip, axes=made)


def campaign(tmp_path: Path, block: str) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "campaign.yaml"
    path.write_text(f"name: c\ncampaign:\n  topologies: [base.yaml]\n{block}\n")
    return path


def test_points_go_with_every_level_and_the_first_points_are_whole_first(tmp_path: Path) -> None:
    path = campaign(
        tmp_path,
        "  points: [{clients: 2}, {clients: 4}]\n  factors: {hold: [10 s, 20 s]}\n  repetitions: 2",
    )
    cells = load_campaign(path).cells
    assert [(c.levels["clients"], c.levels["hold"], c.repetition) for c in cells[:5]] == [
        (2, "10 s", 1), (2, "20 s", 1), (4, "10 s", 1), (4, "20 s", 1), (2, "10 s", 2),
    ]  # fmt: skip
    assert cells[3].name == "small.p002.hold-20s.r1" and len({cell.name for cell in cells}) == 8
    assert [cell.loaded.model.groups["client"].count for cell in cells[:3]] == [2, 2, 4]


def test_a_cell_loaded_alone_is_that_of_the_campaign(tmp_path: Path) -> None:
    path = campaign(
        tmp_path, "  points: [{clients: 2}, {clients: 4}]\n  factors: {hold: [10 s]}\n  repetitions: 2"
    )
    for cell in load_campaign(path).cells:
        alone = load_cell(path, {}, cell.index)
        assert (alone.name, alone.seed, alone.parameters) == (cell.name, cell.seed, cell.parameters)


def test_a_point_may_have_a_topology_of_its_own(tmp_path: Path) -> None:
    other = BASE.replace("name: small", "name: other").replace("clients:", "people:")
    (tmp_path / "other.yaml").write_text(other.replace("${clients}", "${people}"))
    path = campaign(
        tmp_path,
        "  points: [{clients: 2}, {topology: other.yaml, people: 3}, {topology: other.yaml, people: 4}]",
    )
    cells = load_campaign(path).cells
    assert [cell.name for cell in cells] == ["small.p001.r1", "other.p002.r1", "other.p003.r1"]
    assert [cell.levels for cell in cells] == [{"clients": 2}, {"people": 3}, {"people": 4}]
    assert load_cell(path, {}, 2).parameters == cells[2].parameters
    path.write_text(
        path.read_text().replace("topologies: [base.yaml]\n  points: [{clients: 2}, ", "points: [")
    )
    assert [cell.name for cell in load_campaign(path).cells] == ["other.p001.r1", "other.p002.r1"]


@settings(deadline=None)  # the first call imports scipy, which takes longer than the deadline
@given(
    count=st.integers(1, 60),
    seed=st.integers(0, 2**63 - 1),
    low_kbps=st.integers(1, 999),
    high_mbps=st.integers(1, 1000),
    method=st.sampled_from(["halton", "latin-hypercube"]),
    scale=st.sampled_from(["log", "linear"]),
)
def test_samples_stay_in_their_range(
    count: int, seed: int, low_kbps: int, high_mbps: int, method: Method, scale: str
) -> None:
    axis = {"from": f"{low_kbps} kbit/s", "to": f"{high_mbps} Mbit/s", "scale": scale}
    points = sampled(design(count, method, seed, rate=axis, many={"from": 1, "to": 300}))
    rates = [units.whole(units.RATE, point.values["rate"]) for point in points]
    assert all(low_kbps * 1000 <= rate <= high_mbps * 10**6 for rate in rates)
    assert all(isinstance(p.values["many"], int) and 1 <= p.values["many"] <= 300 for p in points)
    assert [point.number for point in points] == list(range(1, count + 1))


def test_a_hypercube_has_one_point_in_each_stratum() -> None:
    points = sampled(design(40, "latin-hypercube", loss={"from": "0 %", "to": "40 %"}))
    shares = sorted(100 * units.real(units.SHARE, point.values["loss"]) for point in points)
    rounded = 0.05 + 1e-9  # the error of rounding to three digits
    assert all(n - rounded <= share <= n + 1 + rounded for n, share in enumerate(shares))


def test_more_points_leave_the_first_ones_and_a_seed_means_others() -> None:
    assert sampled(design(50))[:20] == sampled(design(20))
    assert sampled(design(50))[20:] == sampled(design(30, skip=20))
    assert sampled(design(20)) != sampled(design(20, seed=2))


def test_a_logarithmic_range_has_as_many_points_in_each_decade() -> None:
    axis = {"from": "1 kbit/s", "to": "1000 kbit/s", "scale": "log"}
    points = sampled(design(300, rate=axis))
    decades = [int(np.log10(units.whole(units.RATE, p.values["rate"]) + 0.5)) for p in points]
    assert all(90 <= decades.count(decade) <= 110 for decade in (3, 4, 5))


def test_levels_have_as_many_points_each() -> None:
    points = sampled(design(64, duplex={"levels": ["full", "half"]}))
    assert 28 <= sum(point.values["duplex"] == "half" for point in points) <= 36


@pytest.mark.parametrize("name", ["udp", "tcp", "router-dealer", "pub-sub", "pgm", "mqtt"])
def test_the_topologies_of_the_atlas_take_the_ends_of_its_ranges(name: str) -> None:
    few = {"loss": "0 %", "rate": "50 kbit/s", "delay": "0 ms", "receivers": 1, "size": "600 B"}
    many = {"loss": "40 %", "rate": "10 Mbit/s", "delay": "500 ms", "receivers": 300, "size": "10000 B"}
    file = ATLAS / f"{name}.yaml"
    for ends, duplex in ((few, "half"), (many, "full")):
        found = load(file, {**ends, "duplex": duplex})
        assert found.name == f"atlas-{name}"
        assert found.model.groups["receiver"].count == ends["receivers"]


def test_both_campaigns_of_the_atlas_have_the_same_points() -> None:
    blocks = [
        path.read_text().partition("  design:")[2]
        for path in (ATLAS / "atlas.yaml", ATLAS / "atlas-broker.yaml")
    ]
    assert blocks[0] == blocks[1] != ""


@pytest.mark.parametrize(
    ("block", "rule"),
    [
        ("  points: [{hold: 1 s}]\n  design: {points: 1, axes: {a: {levels: [1, 2]}}}", "with `points`"),
        ("  points: [{clients: 2}, {hold: 10 s}]", "points[1]: a mapping of 1: does not set what the first"),
        ("  points: [{clients: 2}, {topology: 7, clients: 3}]", "points[1].topology: 7: is no topology"),
        ("  points: [{clients: 2}, {topology: x.yaml, clients: 2}]", "x.yaml: of point 2: cannot be read"),
        (
            "  points: [{topology: base.yaml, clients: 2}, {topology: base.yaml}]",
            "does not set what the first point with base.yaml sets: clients",
        ),
        ("  points: [{clients: 2}, {clients: 2}]", "campaign.points[1]: a mapping of 1: stands twice"),
        ("  points: [{clients: 2}]\n  factors: {clients: [1]}", "is set by each point, and by `factors` too"),
        ("  points: [{clients: 2}]\n  parameters: {clients: 1}", "each point, and by `parameters` too"),
        ("  points: [{clients: 2}, {clients: 99}]", "must be at most 9"),
        ("  points: [{clients: [1]}]", "campaign.points[0].clients: a list of 1: a level is a single value"),
        ("  design: {points: 4, axes: {clients: {}}}", "has neither `from` and `to` nor `levels`"),
        ("  design: {points: 4, axes: {hold: {from: 10 s, to: 5 s}}}", "does not rise"),
        ("  design: {points: 4, axes: {hold: {from: 10 s, to: 5 kB}}}", "one kind of quantity to another"),
        ("  design: {points: 4, axes: {hold: {from: 0 s, to: 5 s, scale: log}}}", "begins above zero"),
        ("  design: {points: 4, axes: {hold: {from: soon, to: 5 s}}}", "is not a number with a unit"),
        ("  design: {points: 4, axes: {hold: {from: -1 s, to: 5 s}}}", "cannot be negative"),
        ("  design: {points: 4, skip: 2, axes: {hold: {from: 1 s, to: 5 s}}}", "goes with `method: halton`"),
        ("  design: {points: 9, axes: {clients: {from: 1, to: 3}}}", "equal points when rounded"),
        (
            "  design: {points: 4, axes: {hold: {from: 1 s, to: 5 s, levels: [1 s, 2 s]}}}",
            "has both levels and a range",
        ),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, block: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        load_campaign(campaign(tmp_path, block))
    assert rule in str(caught.value)


def test_a_point_cannot_be_overridden(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="is set by each point, and by `-p` too"):
        load_campaign(campaign(tmp_path, "  points: [{clients: 2}]"), {"clients": "3"})
