"""Tests which segments are affected by a link that goes down: the bridges there discard frames uncounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from capture.conservation.floods import disturbed
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

FILE = """\
name: chain
segments:
  a: {subnet: 10.50.0.0/24}
  b: {subnet: 10.50.0.0/24}
  c: {subnet: 10.50.0.0/24}
  far: {subnet: 10.51.0.0/24}
nodes:
  one: {segment: a, software: {web: {command: "sleep 100"}}}
  two: {segment: b}
  three: {segment: c}
  alone: {segment: far, software: {web: {command: "sleep 100"}}}
links: {a-b: {between: [a, b]}, b-c: {between: [b, c]}}
run: {hold: 20 s}
timeline: [EVENT]
"""


@pytest.mark.parametrize(
    ("event", "segments"),
    [
        ("{at: hold, link-down: a-b, for: 1 s}", {"c"}),
        ("{at: hold, link-down: b-c, for: 1 s}", {"a"}),
        ("{at: hold, partition: two, for: 1 s}", {"a", "b", "c"}),
        ("{at: hold, partition: alone, for: 1 s}", {"far"}),
        ("{at: hold, kill: one, for: 1 s}", {"a", "b", "c"}),
        ("{at: hold, kill: one, software: web, for: 1 s}", set()),
        ("{at: hold, impair: a-b, both: {loss: 50 %}, for: 1 s}", set()),
    ],
)
def test_a_link_that_goes_down_disturbs_the_other_segments_of_its_domain(
    tmp_path: Path, event: str, segments: set[str]
) -> None:
    (tmp_path / "chain.yaml").write_text(FILE.replace("EVENT", event))
    assert disturbed(make_plan(load(tmp_path / "chain.yaml", {}))) == segments
