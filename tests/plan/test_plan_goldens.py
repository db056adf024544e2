"""Compares plans of small topologies with stored plans, word for word; VNET_WRITE_GOLDENS=1 stores
them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.graph import dot
from orchestrator.plan.render import render
from orchestrator.topology.loading import Topology, parse

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"


def _topology(name: str) -> Topology:
    return parse(
        f"topologies/{name}.yaml", (ROOT / "topologies" / f"{name}.yaml").read_bytes(), _FEWER.get(name)
    )


_FEWER = {
    "mqtt-many-to-one": {"clients": "3", "hold": "60 s"},
    "mqtt-many-to-many": {"clients": "3", "hold": "60s"},
    "mqtt-outage": {"clients": "3", "qos": "2"},
}
NAMES = ("pair", "mqtt-many-to-one", "mqtt-many-to-many", "mqtt-outage", "every-impairment")


def _compare(file: str, text: str) -> None:
    path = GOLDEN / file
    if os.environ.get("VNET_WRITE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_text_and_steps(name: str) -> None:
    _compare(f"{name}.txt", render(make_plan(_topology(name)), steps=True))


@pytest.mark.parametrize("name", ["pair", "mqtt-many-to-many"])
def test_the_whole_plan(name: str) -> None:
    _compare(f"{name}.json", to_json(make_plan(_topology(name)), indent=1) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_drawing(name: str) -> None:
    _compare(f"{name}.dot", dot(make_plan(_topology(name))))


@pytest.mark.parametrize("name", NAMES)
def test_plans_survive_their_file_and_are_deterministic(name: str) -> None:
    plan = make_plan(_topology(name), "other", 5)
    assert plan == make_plan(_topology(name), "other", 5)
    assert from_json(Plan, to_json(plan)) == plan
    assert (plan.lab, plan.seed) == ("other", 5)
