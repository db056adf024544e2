"""Tests that light nodes without programs share control groups, and that a node gets its own limits when a
program starts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab_plans import SECOND, node, program

from contract.plan import Node
from orchestrator.lab import cgroup, operations
from orchestrator.lab.operations import Operation
from orchestrator.lab.own_groups import SHARED, OwnGroups, occupied
from orchestrator.lab.sandbox import NodeLimits, bounds

LIMITS = bounds(8 << 30, 1000)
IDLE, BUSY = node("x", 0, "idle"), node("x", 1, "busy", (program("p", "sleep"),))
LIMITED = node("x", 2, "limited", memory_limit_bytes=1 << 20)
PIDS = {"idle": 41, "busy": 42, "limited": 43}


class Trees:
    """Two hierarchies of control groups, made of plain directories."""

    def __init__(self, top: Path) -> None:
        self.tops = {name: top / name for name in ("memory", "pids")}
        for tree in self.tops.values():
            tree.mkdir()
        self.groups = cgroup.Groups(cgroup.Layout(1, dict(self.tops)), "x")
        self.own = OwnGroups(self.groups, NodeLimits(self.groups, LIMITS))

    def there(self) -> list[set[str]]:
        return [{d.name for d in (top / "vnet" / "x").iterdir() if d.is_dir()} for top in self.tops.values()]

    def joined(self, of: Node) -> set[str]:
        return {Path(file).parent.name for file in self.own.procs(of)}

    def reads(self, tree: str, name: str, file: str) -> str:
        return (self.tops[tree] / "vnet" / "x" / name / file).read_text()


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


def test_a_node_that_runs_nothing_has_no_group(trees: Trees) -> None:
    trees.own.make([IDLE, BUSY, LIMITED])
    assert trees.there() == [{SHARED, "busy", "limited"}] * 2
    assert trees.joined(IDLE) == {SHARED} and trees.joined(BUSY) == {"busy"}
    assert trees.reads("memory", "busy", "memory.limit_in_bytes") == str(LIMITS.memory_bytes)


def test_a_lab_without_idle_nodes_has_no_shared_group(trees: Trees) -> None:
    trees.own.make([BUSY])
    assert trees.there() == [{"busy"}] * 2


def test_its_first_program_gives_it_one_with_bounds(trees: Trees) -> None:
    trees.own.make([IDLE])
    trees.own.give(["idle"], PIDS)
    assert trees.joined(IDLE) == {"idle"}
    for tree, file, bound in (
        ("memory", "memory.limit_in_bytes", LIMITS.memory_bytes), ("pids", "pids.max", LIMITS.processes),
    ):  # fmt: skip
        assert trees.reads(tree, "idle", file) == str(bound)
        assert trees.reads(tree, "idle", "cgroup.procs") == "41"


def test_one_that_has_its_own_stays_there(trees: Trees) -> None:
    trees.own.make([BUSY])
    trees.own.give(["busy", "nobody"], PIDS)
    assert not (trees.tops["pids"] / "vnet/x/busy/cgroup.procs").exists(), "its process joined by itself"


def test_only_groups_of_their_own_go_with_nodes(trees: Trees) -> None:
    other = node("x", 3, "other")
    trees.own.make([IDLE, other])
    trees.own.remove([IDLE])
    assert trees.there() == [{SHARED}] * 2 and trees.joined(other) == {SHARED}
    trees.own.make([IDLE])  # a node is created again under the same name
    assert trees.joined(IDLE) == {SHARED}


def test_a_tree_that_is_added_gets_the_groups_of_all(trees: Trees, tmp_path: Path) -> None:
    trees.own.make([IDLE, BUSY])
    for name, pid in ((SHARED, "41"), ("busy", "42")):
        for top in trees.tops.values():
            (top / "vnet/x" / name / "cgroup.procs").write_text(pid)
    added = tmp_path / "cpu"
    for name in (SHARED, "busy"):  # the kernel makes this file when it makes the group
        (added / "vnet/x" / name).mkdir(parents=True)
        (added / "vnet/x" / name / "cgroup.procs").touch()
    os.setxattr(added / "vnet/x", cgroup.MARK, b"1")
    trees.groups.layout.mounts["cpu"] = added
    trees.groups.need("cpu", "a test")
    trees.own.renew([IDLE, BUSY])
    read = {name: (added / "vnet/x" / name / "cgroup.procs").read_text() for name in (SHARED, "busy")}
    assert read == {SHARED: "41", "busy": "42"}


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (operations.Start("a", {}), ["a"]),
        (operations.Exec("a", ["true"], {}, None), ["a"]),
        (operations.Workload([{"node": "b", "software": {}, "flows": []}]), ["b"]),  # type: ignore[typeddict-item]
        (operations.Stop("a", "p", "SIGTERM", SECOND), []),
        (operations.Set("a"), []),
    ],
)
def test_what_begins_to_run_in_a_node_is_known(request_: Operation[object], names: list[str]) -> None:
    assert occupied(request_) == names
