"""Tests designs that combine values: full, one at a time, and fractions with the effects that they
confound.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from malformed import BASE

from orchestrator.topology import TopologyError, load_campaign
from orchestrator.topology.design import described, drawn
from orchestrator.topology.document import Design
from orchestrator.topology.factorial import columns_of, fraction, least_points, resolution

HOLD = {"from": "10 s", "to": "20 s", "steps": 3}
RATE = {"from": "10 kbit/s", "to": "1000 kbit/s", "scale": "log", "steps": 3}
KIND = {"levels": ["udp", "tcp"]}


def points(method: str, axes: dict[str, Any], **more: Any) -> list[tuple[Any, ...]]:
    design = Design.model_validate({"method": method, "axes": axes, **more})
    return [tuple(point.values.values()) for point in drawn(design)]


def test_a_full_design_has_every_combination_of_levels_and_steps() -> None:
    found = points("full", {"hold": HOLD, "kind": KIND})
    assert found == [
        ("10 s", "udp"), ("10 s", "tcp"), ("15 s", "udp"), ("15 s", "tcp"), ("20 s", "udp"), ("20 s", "tcp"),
    ]  # fmt: skip


def test_units_of_a_range_may_follow_without_a_space() -> None:
    """Shows that `5s` is a duration, as in `-p hold=5s`."""
    assert points("full", {"hold": {"from": "10s", "to": "20s", "steps": 3}}) == [
        ("10s",),
        ("15 s",),
        ("20s",),
    ]


def test_one_at_a_time_leaves_the_others_at_their_first_value() -> None:
    assert points("one-at-a-time", {"rate": RATE, "kind": KIND}) == [
        ("10 kbit/s", "udp"), ("100 kbit/s", "udp"), ("1000 kbit/s", "udp"), ("10 kbit/s", "tcp"),
    ]  # fmt: skip


# The highest published resolutions of 2^(k-p) designs: Box, Hunter and Hunter, 2005, table 6.22.
BEST = {
    (4, 8): 4, (5, 8): 3, (6, 8): 3, (7, 8): 3, (5, 16): 5, (6, 16): 4, (7, 16): 4, (8, 16): 4, (9, 16): 3,
    (15, 16): 3, (7, 32): 4, (8, 32): 4, (9, 32): 4, (10, 32): 4, (11, 32): 4, (16, 32): 4, (8, 64): 5,
}  # fmt: skip


@pytest.mark.parametrize(("axes", "size"), BEST)
def test_fractions_have_the_published_resolution(axes: int, size: int) -> None:
    assert resolution(columns_of(axes, size.bit_length() - 1)) == BEST[axes, size]


@pytest.mark.parametrize(("axes", "size"), [(4, 8), (7, 8), (6, 16), (8, 16)])
def test_a_fraction_is_balanced_and_its_axes_are_orthogonal(axes: int, size: int) -> None:
    table = np.array(list(fraction([[-1, 1]] * axes, size)))
    assert len({tuple(row) for row in table}) == size
    assert (table.sum(axis=0) == 0).all() and (table.T @ table == size * np.eye(axes)).all()


@pytest.mark.parametrize("axes", range(4, 12))
def test_by_default_no_axis_is_confounded_with_an_interaction_of_two(axes: int) -> None:
    size = least_points(axes)
    table = np.array(list(fraction([[-1, 1]] * axes, size)))
    for a, b in combinations(range(axes), 2):
        others = [c for c in range(axes) if c not in (a, b)]
        assert not (table[:, others].T @ (table[:, a] * table[:, b])).any()
    assert size == 8 or axes > size // 4, "half as many would not do"


def test_a_fraction_says_what_it_cannot_tell_apart() -> None:
    axes = {name: {"levels": [0, 1]} for name in ("delay", "loss", "rate", "size")}
    design = Design.model_validate({"method": "fractional", "axes": axes})
    assert described(design) == (
        "fractional: 8 of 16 combinations, resolution IV: no effect of an axis is confounded with an "
        "interaction of two axes (size = delay x loss x rate)"
    )


SIX = ", ".join(f"p{n}: {{levels: [1, 2]}}" for n in range(6))


@pytest.mark.parametrize(
    ("design", "rule"),
    [
        ("axes: {hold: {from: 1 s, to: 5 s}}", "is missing: latin-hypercube samples"),
        ("method: full, points: 4, axes: {hold: {from: 1 s, to: 5 s}}", "axes give the number"),
        ("method: full, axes: {a: {levels: [1, 2], steps: 3}}", "goes with ranges of `full`"),
        ("points: 4, axes: {hold: {from: 1 s, to: 5 s, steps: 3}}", "goes with ranges of `full`"),
        ("method: full, axes: {clients: {from: 1, to: 3, steps: 9}}", "equal points when rounded"),
        (
            "method: full, axes: {a: {from: 1, to: 999, steps: 100}, b: {from: 1, to: 999, steps: 100}, "
            "c: {levels: [1, 2]}}",
            "20000 combinations are more than 10000",
        ),
        ("method: fractional, axes: {a: {levels: [1, 2]}}", "a fraction has 3 to 40 axes"),
        (f"method: fractional, points: 12, axes: {{{SIX}}}", "is no power of two above 6 and below 64"),
        (f"method: fractional, points: 64, axes: {{{SIX}}}", "is no power of two above 6 and below 64"),
        (f"method: fractional, axes: {{{SIX}, q: {{levels: [1, 2, 3]}}}}", "has two levels of each axis"),
        (
            f"method: fractional, axes: {{{SIX}, q: {{levels: [1 s, 1000 ms]}}}}",
            'levels[1]: "1000 ms": stands tw',
        ),
        ("method: full, axes: {a: {levels: [[1], [2]]}}", "a level is a single value"),
        ("method: full, axes: {a: {levels: [1, null]}}", "a level is a single value"),
        ("method: full, axes: {a: {levels: [1, 2], scale: log}}", 'scale: "log": goes with a range'),
        ("method: full, seed: 4, axes: {a: {levels: [1, 2]}}", "seed: 4: goes with sampled points alone"),
        ("method: full, axes: {a: {from: -5, to: 5}}", "begins below zero; begin at zero or above"),
        ("method: full, axes: {hold: {from: 5 s, to: 1 s}}", "does not rise; write the smaller value at"),
        (
            "method: fractional, axes: {a: {from: 1, to: 2}, b: {from: 1, to: 2}, c: {from: 1, to: 2}}",
            "resolution IV",
        ),
    ],
)
def test_refused(tmp_path: Path, design: str, rule: str) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "campaign.yaml"
    path.write_text(f"name: c\ncampaign:\n  topologies: [base.yaml]\n  design: {{{design}}}\n")
    with pytest.raises(TopologyError) as caught:
        load_campaign(path)
    assert rule in str(caught.value)
