"""Tests that many light nodes are created in several requests, and that a lab without any gets its core
namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_plans import make_plan, node

from orchestrator.lab import namespaces, operations
from orchestrator.lab.drivers import light


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_all_nodes_are_made_once_in_their_order(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan("batches", tuple(node("batches", number, f"n{number}") for number in range(count)))
    asked: list[operations.Create] = []

    def begin(request: operations.Create) -> Callable[[int], operations.Created]:
        asked.append(request)
        return lambda patience_ns: {"pids": {one["name"]: 100 + len(asked) for one in request.nodes}}

    monkeypatch.setattr(light, "BATCH", 2)
    monkeypatch.setattr(namespaces, "bypass_netfilter", lambda core: {})
    driver = object.__new__(light.LightDriver)
    vars(driver).update(
        _limits=SimpleNamespace(need=lambda nodes: None),
        _own_groups=SimpleNamespace(make=lambda nodes: None, procs=lambda node: []),
        _node_limits=SimpleNamespace(disk_bytes=lambda node: 1, ring_bytes=lambda nodes: 1 << 22),
        _at=SimpleNamespace(virtual=False, plan=plan),
        _nodes={},
        _pids={},
        _ipv6=set(),
        _sandbox=lambda: {"hidden": [], "replaced": {}, "logs": str(Path("/logs")), "disk_bytes": 1},
        _launcher=SimpleNamespace(begin=begin),
    )
    pids = driver.create(plan.nodes, plan.core_netns)
    assert [one["name"] for request in asked for one in request.nodes] == [n.name for n in plan.nodes]
    assert all(len(request.nodes) <= 2 and request.core == plan.core_netns for request in asked)
    assert list(pids) == [n.name for n in plan.nodes]
    assert all(one["ring_bytes"] == 1 << 22 for request in asked for one in request.nodes)
    assert asked, "the core namespace is made even where there are no light nodes"
