"""Tests the event `split`: it sets the links between the given sets of nodes down, and no other link."""

from __future__ import annotations

import pytest

from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse
from orchestrator.topology.partitions import cut

FILE = """\
name: splits
segments: {near: {subnet: 10.1.0.0/24}, far: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: near}
  b: {segment: near}
  c: {segment: far}
  d: {segment: far}
links: {wan: {between: [near, far]}}
timeline:
  - {at: hold + 1 s, split: SETS, for: 2 s}
run: {hold: 10 s}
"""


def targets(sets: str) -> tuple[str, ...]:
    plan = make_plan(parse("splits.yaml", FILE.replace("SETS", sets).encode()))
    down, up = plan.events
    assert (down.action, up.action, up.at_ns - down.at_ns) == ("link-down", "link-up", 2 * 10**9)
    assert down.targets == up.targets and {link.name for link in plan.links} >= set(down.targets)
    return down.targets


@pytest.mark.parametrize("sets", ["[[a, b], [c, d]]", "[near, far]", "[a, c]"])
def test_the_link_between_two_segments_goes_down(sets: str) -> None:
    assert targets(sets) == ("wan",)


def test_a_node_is_cut_from_its_segment_when_the_others_stay() -> None:
    assert targets("[[a, near], [b]]") == ("access-b",)
    assert targets("[[a, near], d]") == ("access-d",), "the segment far is as near to both, so to the first"
    assert set(targets("[a, b, [c, d]]")) == {"access-b", "wan"}


def test_a_set_that_would_be_torn_is_refused() -> None:
    with pytest.raises(TopologyError, match="c and d of one set reach each other only through the cut"):
        targets("[[a, far], [c, d]]")


def test_what_no_set_names_stays_with_the_nearest_set() -> None:
    links = {"one": ("a", "x"), "two": ("x", "y"), "three": ("y", "z"), "four": ("z", "b")}
    assert cut([["a"], ["b"]], links).links == ("three",)
    assert cut([["a"], ["q"]], links).links == ()
