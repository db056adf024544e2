"""Tests that files of control groups are read and written with few system calls, and that groups are
removed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.lab import cgroup, processes
from orchestrator.lab.cgroup import Groups, Layout


def test_a_file_is_written_and_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "pids.max"
    cgroup.put(file, "max and more")
    cgroup.put(str(file), "12\n")
    assert cgroup.text_of(file) == "12\n"
    with pytest.raises(FileNotFoundError):
        cgroup.text_of(tmp_path / "absent")


def test_groups_are_made_once_in_every_tree(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "vnet" / "x").mkdir(parents=True)
    groups = Groups(Layout(1, {"cpuacct": tmp_path / "a", "memory": tmp_path / "b"}), "x")
    for _ in range(2):
        groups.create(["vnet/x/n1"])
    assert (tmp_path / "a/vnet/x/n1").is_dir() and (tmp_path / "b/vnet/x/n1").is_dir()
    assert groups.procs("vnet/x/n1") == [f"{tmp_path}/{t}/vnet/x/n1/cgroup.procs" for t in ("a", "b")]
    assert groups.cpu_files("vnet/x/n1") == [f"{tmp_path}/a/vnet/x/n1/cpuacct.usage"]
    assert groups.memory_file("vnet/x/n1") == f"{tmp_path}/b/vnet/x/n1/memory.usage_in_bytes"


def test_a_tree_is_removed_with_groups_in_groups(tmp_path: Path) -> None:
    for name in ("n1", "n2/of-a-program", "n3"):
        (tmp_path / "x" / name).mkdir(parents=True)
    cgroup.remove_tree(tmp_path / "x")
    assert not (tmp_path / "x").exists()
    cgroup.remove_tree(tmp_path / "x")


def test_cpu_times_are_read_from_processes_and_from_the_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("7\n8\n")
    (tmp_path / "7").mkdir()
    fields = " ".join(["S", *["0"] * 10, "1", "2", "3", "4", "0"])
    (tmp_path / "7" / "stat").write_text(f"7 (a b) {fields}\n")
    (tmp_path / "cpuacct.usage").write_text("1234\n")
    assert processes.of_processes(tmp_path / "cgroup.procs", tmp_path) == 10 * processes.TICK_NS
    assert processes.of_processes(tmp_path / "absent", tmp_path) is None
    assert processes.of_group(str(tmp_path / "cpuacct.usage")) == 1234
