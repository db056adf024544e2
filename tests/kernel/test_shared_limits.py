"""Tests that the kernel limits that all nodes of a lab share suffice for many nodes
(tests/virtual/test_many_talk.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernel_plans import plan as some_plan

from orchestrator.kernel.uml import boot
from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.virtual.kernel import supervised
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

LAB = """\
name: many
segments: {l: {subnet: 10.1.0.0/19}}
nodes: {broker: {segment: l, software: {m: {broker: mosquitto}}}}
groups:
  c: {count: COUNT, segment: l, software: {s: {mqtt: {broker: broker, publish: {topic: t, rate: 1 /s}}}}}
run: {hold: 1 s}
"""
BINARY = UmlBinary(Path("/k/linux"), "7.3.4-lab", "built", None)


@pytest.mark.parametrize("count", [600, 1000])
def test_every_limit_holds_what_the_plan_of_many_nodes_predicts(count: int) -> None:
    made = make_plan(parse("many.yaml", LAB.replace("COUNT", str(count)).encode()))
    needed = {p.name: p.value for p in made.predictions if p.scope in ("kernel", "lab")}
    assert needed["neighbour entries"] >= 2 * count > 1024, "more than a kernel keeps by itself (gc_thresh3)"
    tables = {name: value for name, value in boot.LIMITS.items() if "gc_thresh" in name}
    assert len(tables) == 6, "three thresholds for IPv4 and three for IPv6"
    assert min(tables.values()) >= needed["neighbour entries"]
    assert boot.LIMITS["kernel/pid_max"] >= needed["processes"]
    assert boot.LIMITS["fs/inotify/max_user_instances"] >= count


def test_both_lab_kernels_are_told_these_limits(tmp_path: Path) -> None:
    assert supervised(some_plan(), "7.3.4", 1 << 30, 5000)["limits"] == boot.LIMITS
    boot.write_settings(tmp_path, BINARY, tmp_path, tmp_path, [], {}, str(tmp_path / "control"))
    assert json.loads((tmp_path / boot.SETTINGS).read_text())["limits"] == boot.LIMITS
