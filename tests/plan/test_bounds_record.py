"""Tests bounds.json of a run directory: it exists if a flow has a curve, and keeps the notes on end nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.bounds.record import record_bounds
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

UDP = """\
name: one
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: lan, software: {out: {udp: {to: b, push: {size: 958 B, rate: 10 /s}}}}}
  b: {segment: lan, software: {in: {udp: {listen: 9000}}}}
links: {a: {between: [a, lan], both: {rate: 8 Mbit/s}}, b: {between: [b, lan], both: {rate: 8 Mbit/s}}}
run: {hold: 5 s}
"""
TCP = UDP.replace("udp: {to: b, push: {size: 958 B, rate: 10 /s}}", "bulk: {to: b}").replace("udp", "bulk")


def written(run_dir: Path, text: str = UDP, time: str = "virtual", **said: int) -> dict[str, Any] | None:
    record_bounds(run_dir, make_plan(parse("one.yaml", text.encode())), time, **said)
    file = run_dir / "bounds.json"
    return dict(json.loads(file.read_text())) if file.exists() else None


@pytest.mark.parametrize(("time", "node_ns"), [("virtual", 100_000), ("real", 0)])
def test_end_nodes_take_what_is_known_of_the_kind_of_time(tmp_path: Path, time: str, node_ns: int) -> None:
    found = written(tmp_path, time=time)
    assert found is not None and found["node_ns"] == node_ns
    # 958 B and headers of 42 B take 1 ms on each of two links; the time in the node does not count a second
    # message.
    assert found["bounds"][0]["worst_ns"] == pytest.approx(2_000_000 + 2 * node_ns, rel=0.01)


def test_what_was_said_of_it_is_kept(tmp_path: Path) -> None:
    written(tmp_path, node_ns=7_000)
    found = written(tmp_path)
    assert found is not None and found["node_ns"] == 7_000


def test_where_nothing_bounds_what_is_sent_there_is_none(tmp_path: Path) -> None:
    assert written(tmp_path, TCP) is None
