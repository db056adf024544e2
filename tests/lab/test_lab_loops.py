"""Tests a loop of bridges with a spanning tree: one port blocks, and forwards when a link fails."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from lab_running import Control, Running, needs_light, served, until

from orchestrator.plan.build import make_plan
from orchestrator.plan.segment_paths import SegmentPaths
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

LOOP = """\
name: loop
segments:
  a: {subnet: 10.1.0.0/24, stp: true}
  b: {stp: true}
  c: {stp: true}
  apart: {subnet: 10.2.0.0/24}
nodes:
  one: {segment: a}
  two: {segment: b}
  three: {segment: c}
links: {a-b: {between: [a, b]}, b-c: {between: [b, c]}, c-a: {between: [c, a]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "path", "rule"),
    [
        ("stp: true", "stp: false", "links.c-a.between", "write `stp: true` at its segments"),
        ("b: {stp: true}", "b: {}", "segments.b", "a spanning tree together"),
    ],
)
def test_loops_need_a_tree_and_all_of_its_segments(old: str, new: str, path: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse("loop.yaml", LOOP.replace(old, new).encode())
    assert any(p.path == path and rule in str(p) for p in caught.value.problems), caught.value


def test_the_plan_knows_no_way_through_the_loop() -> None:
    plan = make_plan(parse("loop.yaml", LOOP.encode()))
    paths = SegmentPaths(plan.links)
    assert paths.directions("one", "a", "two", "b") is None
    assert paths.directions("one", "a", "other", "a") == ()
    bridges = next(step.text for step in plan.steps if step.reason == "bridges of the segments")
    assert bridges.count("stp_state 1") == 3 and bridges.count("stp_state 0") == 1


def states(lab: Running) -> list[str]:
    """Returns the sorted states of the bridge ports, read from the kernel."""
    read = ["ip", "-n", lab.plan.core_netns, "-j", "-d", "link"]
    said = json.loads(subprocess.run(read, capture_output=True, text=True, check=True).stdout)
    ports = [link["linkinfo"] for link in said if link.get("linkinfo", {}).get("info_slave_kind") == "bridge"]
    return sorted(port["info_slave_data"]["state"] for port in ports)


def reaches(lab: Running, node: str, address: str) -> bool:
    control = Control(lab)
    argv = ["ping", "-c1", "-W1", address]
    answer, events = control.answer(control.send("exec", node=node, argv=argv, env={}, tty=None))
    said = b"".join(base64.b64decode(e["data"]) for e in events if e["event"] == "output")
    return bool(answer["status"] == 0) and b" 0% packet loss" in said


@needs_light
def test_a_link_of_the_tree_fails_and_the_blocked_one_takes_its_place(tmp_path: Path) -> None:
    with served(make_plan(parse("loop.yaml", LOOP.encode())), tmp_path) as running:
        assert states(running) == ["blocking", *["forwarding"] * 8]
        pairs = [("one", "10.1.0.2"), ("two", "10.1.0.3"), ("three", "10.1.0.1")]
        assert all(reaches(running, node, address) for node, address in pairs)
        # Bridge a is the root of the tree, so both of its links are used, and the link between b and c is
        # blocked.
        assert Control(running).call("link", link="a-b", down=True)["ok"]
        until(40, "the way over c", lambda: all(reaches(running, n, address) for n, address in pairs))
        assert "blocking" not in states(running)
