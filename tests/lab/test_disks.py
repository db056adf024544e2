"""Tests the disk I/O of nodes: sums over processes, processes that end, files in memory, disks of VM
nodes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.lab.disks import HEADER, in_memory, io_of, write
from orchestrator.lab.lab import Lab
from orchestrator.lab.vm.counters import Rising
from orchestrator.lab.vm.disks import MachineDisks

IO = "rchar: 9\nwchar: 9\nsyscr: 1\nsyscw: 1\nread_bytes: {}\nwrite_bytes: {}\ncancelled_write_bytes: 0\n"


class Proc:
    """A /proc of a test's own, and the control group of node `a` with its processes."""

    def __init__(self, place: Path) -> None:
        self.path, self.group, self.run = place / "proc", place / "group", place / "run"
        (self.run / "raw").mkdir(parents=True)
        (self.path / "self").mkdir(parents=True)
        (self.path / "self" / "io").write_text(IO.format(0, 0))
        self.group.mkdir()

    def process(self, pid: int, read: int, written: int, root: Path | None = None) -> None:
        """root: the directory with the process's own /tmp."""
        own = self.path / str(pid)
        own.mkdir(exist_ok=True)
        (own / "io").write_text(IO.format(read, written))
        if root is not None:
            (own / "root").symlink_to(root)

    def members(self, *pids: int) -> None:
        (self.group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def lab(self) -> Lab:
        node = SimpleNamespace(name="a", software=("program",), vm=None)
        driver = SimpleNamespace(counters=lambda _: {"cpu": [f"{self.group}/cpu.stat"], "memory": None})
        plan = SimpleNamespace(hosts=())
        return cast(Lab, SimpleNamespace(nodes={"a": node}, driver=driver, plan=plan, run_dir=self.run))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def lines(proc: Proc) -> list[str]:
    write(proc.lab(), proc.path)
    file = proc.run / "raw" / "disks.csv"
    return file.read_text().removeprefix(HEADER).splitlines() if file.exists() else []


@pytest.mark.parametrize("place", ["/dev/shm", "/proc/sys/net", None])
def test_a_node_has_the_sum_of_its_processes_and_memory_is_said(proc: Proc, place: str | None) -> None:
    """Shows the sums, and the word for the file system of /tmp; `stat -f` is the oracle."""
    root = proc.path / "tree"
    root.mkdir()
    (root / "tmp").symlink_to(place or proc.path)
    kind = subprocess.run(["stat", "-f", "-c", "%T", place or proc.path], capture_output=True, text=True)
    memory = int(kind.stdout.strip() in ("tmpfs", "ramfs"))
    assert memory == 1 or place != "/dev/shm"
    proc.process(7, 4096, 8192, root)
    proc.process(8, 0, 1000, root)
    proc.members(7, 8)
    assert lines(proc) == [f"a,processes,4096,9192,,,{memory}"]
    proc.members(7, 6)  # process 6 has just ended
    assert lines(proc) == [f"a,processes,4096,8192,,,{memory}"]


def test_a_process_that_may_not_be_read_leaves_its_node_out(
    proc: Proc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a node has no disk figure if one of its processes cannot be read: a partial sum would look
    complete.
    """
    proc.process(7, 1, 1)
    proc.members(7)
    assert lines(proc)
    (proc.run / "raw" / "disks.csv").unlink()
    monkeypatch.setattr("orchestrator.lab.disks.io_of", lambda _file: None)
    assert lines(proc) == []


def test_a_kernel_without_the_counters_counts_nothing(proc: Proc) -> None:
    (proc.path / "self" / "io").unlink()
    proc.process(7, 1, 1)
    proc.members(7)
    assert lines(proc) == []


def test_what_has_ended_counts_nothing_more(tmp_path: Path) -> None:
    assert io_of(tmp_path / "gone" / "io") == (0, 0) and in_memory(tmp_path / "gone") is None


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel has no /proc/PID/io")
def test_a_process_has_what_its_ended_children_wrote(tmp_path: Path) -> None:
    before = io_of(Path("/proc/self/io"))
    program = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(bytes(1 << 16)); f.flush(); os.fsync(f)"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True)
    after = io_of(Path("/proc/self/io"))
    assert before is not None and after is not None
    grown = after[1] - before[1]
    assert grown == 0 or grown >= 1 << 16, "none where the file is in memory, else all of it"


def stats(read: int, written: int) -> dict[str, Any]:
    """Returns libvirt's figures of a machine with a disk and a seed from which nothing was read."""
    return {
        "block.count": 2, "block.0.name": "vda", "block.0.path": "/disks/a/disk.qcow2",
        "block.0.rd.bytes": read, "block.0.wr.bytes": written, "block.0.rd.reqs": read // 100,
        "block.0.wr.reqs": written // 100, "block.1.name": "vdb",
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "memory"), [("ext4", "0"), ("tmpfs", "1")])
def test_a_machine_has_its_disks_counts_since_the_first_sample(
    tmp_path: Path, kind: str, memory: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /disks rw - {kind} b rw\n3 1 8:3 / /disk rw - xfs c rw\n"
    )
    disks = MachineDisks(Rising().take, mounts)
    for read, written in ((1000, 500), (3000, 700), (200, 100)):  # the third is after a restart
        disks.take("a", stats(read, written))
    disks.write(tmp_path / "disks.vm.csv")
    assert (tmp_path / "disks.vm.csv").read_text() == (
        f"{HEADER}a,vda,2200,300,22,3,{memory}\na,vdb,0,0,0,0,\n"
    )


def test_machines_without_disks_have_no_file(tmp_path: Path) -> None:
    disks = MachineDisks(Rising().take)
    disks.take("a", {"block.count": 0})
    disks.write(tmp_path / "disks.vm.csv")
    assert not (tmp_path / "disks.vm.csv").exists()
