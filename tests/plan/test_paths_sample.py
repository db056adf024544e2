"""Tests which paths are printed and proven if there are too many: an even sample of all pairs of nodes."""

from __future__ import annotations

import itertools

import pytest

from orchestrator.plan.build import make_plan
from orchestrator.plan.paths import MOST_PAIRS, pairs, unranked
from orchestrator.topology.loading import parse


@pytest.mark.parametrize("n", [2, 3, 7, 60])
def test_a_pair_by_its_place(n: int) -> None:
    wanted = list(itertools.combinations(range(n), 2))
    assert [unranked(n, place) for place in range(len(wanted))] == wanted


def test_the_last_of_very_many() -> None:
    n = 100_000
    assert unranked(n, n * (n - 1) // 2 - 1) == (n - 2, n - 1)


def test_every_node_of_a_long_line_is_in_the_sample() -> None:
    size = 100
    nodes = "".join(f"  r{i}: {{forward: true}}\n" for i in range(size))
    links = "".join(f"  l{i}: {{between: [r{i}, r{i + 1}]}}\n" for i in range(size - 1))
    found = pairs(make_plan(parse("line.yaml", f"name: line\nnodes:\n{nodes}links:\n{links}".encode())))
    assert len(found) == len({(a.name, b.name) for a, b in found}) == MOST_PAIRS
    # In pairs (first, second) of a list, later nodes are rarely the first and often the second.
    assert len({node.name for pair in found for node in pair}) > 0.9 * size
