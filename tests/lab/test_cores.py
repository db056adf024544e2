"""Tests the exclusive cores of nodes: their choice, and that the kernel keeps the rest of the lab
off them.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from lab_plans import make_plan, node
from lab_running import Control, needs_light, served

from contract.plan import Node
from orchestrator.lab.cores import Cores


def asking(name: str, own: bool = True) -> Node:
    return dataclasses.replace(node("cores", 0, name), own_core=own)


@pytest.mark.parametrize(
    ("allowed", "asked", "given", "rest"),
    [
        ({0, 1, 2, 3}, ("a", "b"), {"a": 3, "b": 2}, {0, 1}),
        ({4, 7}, ("a", "b"), {"a": 7}, {4}),
        ({0}, ("a",), {}, {0}),
        ({0, 1}, (), {}, {0, 1}),
    ],
)
def test_the_last_are_given_and_one_stays(
    allowed: set[int], asked: tuple[str, ...], given: dict[str, int], rest: set[int]
) -> None:
    cores = Cores([asking("other", own=False), *map(asking, asked)], allowed)
    assert (cores.given, cores.rest) == (given, rest)


@needs_light
@pytest.mark.root
def test_nobody_else_of_the_lab_runs_there(tmp_path: Path) -> None:
    nodes = tuple(dataclasses.replace(node("cores", n, f"n{n}"), own_core=n == 1) for n in range(3))
    before = os.sched_getaffinity(0)
    with served(make_plan("cores", nodes), tmp_path) as running:
        now = Control(running).call("inspect")["nodes"]
        found = {name: os.sched_getaffinity(node["pid"]) for name, node in now.items()}
    warned = [w["code"] for w in running.manifest["warnings"]]
    if len(before) == 1:
        assert now["n1"]["limits"] == {} and warned == ["shared-core"]
        return
    assert found["n1"] == {now["n1"]["limits"]["core"]} == {max(before)}
    assert found["n0"] == found["n2"] == before - found["n1"]
    assert warned == []
