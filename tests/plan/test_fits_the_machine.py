"""Tests predictions of a lab's needs, and that a lab too large for the machine is refused before anything is
made.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.capacity import MachineFacts, problems
from orchestrator.topology import load
from orchestrator.topology.loading import parse

TOPOLOGIES = Path(__file__).parents[2] / "topologies"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load(TOPOLOGIES / "mqtt-many-to-one.yaml"))


def _value(plan: Plan, name: str, scope: str) -> float:
    return next(p.value for p in plan.predictions if (p.name, p.scope) == (name, scope))


def test_predictions_of_scenario_1(plan: Plan) -> None:
    # There and back: 10 ms of delay each way, and 1514 bytes at 1 Gbit/s each way.
    assert _value(plan, "round trip", "broker <-> client") == pytest.approx(
        0.02 + 2 * 1514 * 8 / 1e9, abs=1e-9
    )
    assert _value(plan, "round trip", "broker <-> subscriber") == 0
    assert _value(plan, "bandwidth-delay product", "wan forward") == 1.25e6
    assert _value(plan, "processes", "lab") == 352 + 1 + 1 + 2
    # 100 /s for the hold of 900 s, and for the ramp of 351 x 0.2 s on average half of it.
    assert _value(plan, "messages", "run") == pytest.approx(100 * (900 + 70.2 / 2), rel=0.002)
    assert 352 * 1e6 < _value(plan, "memory", "lab") < 0.5e9


def test_access_links_count_once_each_way() -> None:
    plan = make_plan(load(TOPOLOGIES / "pair.yaml"))
    assert _value(plan, "round trip", "left <-> right") == pytest.approx(0.02)


def test_more_cores_are_reserved_than_there_are() -> None:
    text = (
        (TOPOLOGIES / "pair.yaml")
        .read_text()
        .replace("segment: lan\n", "segment: lan\n    cpu_reserve: 1.5 cores\n")
    )
    plan = make_plan(parse("pair.yaml", text.encode()))
    assert problems(plan, MachineFacts(cores=3)) == []
    (problem,) = problems(plan, MachineFacts(cores=1))
    assert str(problem) == (
        "pair.yaml: cpu_reserve: 3 cores together: the lab's kernel has 1 core; reserve less"
    )


def test_a_large_machine_holds_it(plan: Plan) -> None:
    assert problems(plan, MachineFacts()) == []
    assert problems(plan, MachineFacts(16 << 30, 1 << 20, 30_000, 1023, 4096, 1 << 40)) == []


@pytest.mark.parametrize(
    ("facts", "path", "rule"),
    [
        (
            MachineFacts(memory_available_bytes=400 << 20),
            "memory",
            "the lab needs about 450 MB, 419 MB are free",
        ),
        (MachineFacts(open_files=512), "open files", "this machine allows 512"),
        (MachineFacts(processes=300), "processes", "this machine allows 300"),
        (MachineFacts(bridge_ports=350), "segments.clients", "a bridge has at most 350 ports"),
        (MachineFacts(neighbour_entries=512), "neighbour entries", "this machine allows 512"),
        (MachineFacts(disk_available_bytes=10**8), "captures", "captures need up to 201 MB, 100 MB are free"),
    ],
)
def test_a_small_one_does_not(plan: Plan, facts: MachineFacts, path: str, rule: str) -> None:
    (found,) = problems(plan, facts)
    assert (found.path, found.rule) == (path, rule)
    assert found.remedy
