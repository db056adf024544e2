"""Tests the counters of CPU time that the lab needed and others used: control groups of both versions, run
queues, cores, and machines without such counters.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from capture import disturbance
from orchestrator.lab import cpu_contention
from orchestrator.lab.errors import LabError
from orchestrator.lab.heartbeat import BEATS, STOPPED, TAKEN, Counters, Heartbeat
from orchestrator.lab.stopped_processes import (
    EACH,
    EACH_IN_GUEST,
    EVERY,
    EVERY_IN_GUEST,
    StoppedChildren,
    StoppedProcesses,
)

V2 = "nr_periods 7\nnr_throttled 3\nthrottled_usec 250\n"
V1 = "nr_periods 7\nnr_throttled 3\nthrottled_time 250000\n"


def proc(path: Path, cgroup: str, mounts: str) -> Path:
    (path / "self").mkdir(parents=True)
    (path / "self" / "cgroup").write_text(cgroup)
    (path / "self" / "mountinfo").write_text(mounts)
    return path


def test_groups_of_version_2_up_to_the_mount(tmp_path: Path) -> None:
    tree = tmp_path / "cg"
    (tree / "a/b").mkdir(parents=True)
    mounts = f"30 1 0:9 / {tree} rw - cgroup2 cgroup2 rw\n"
    groups = cpu_contention.chain(proc(tmp_path / "proc", "0::/a/b\n", mounts))
    assert groups == [tree / "a/b", tree / "a", tree]
    (tree / "cpu.stat").write_text("usage_usec 5\n")  # the root group has no quota
    (tree / "a/cpu.stat").write_text(V2)
    throttling = cpu_contention.Throttling(lambda: groups)
    assert throttling.read() == (0, 0, 0), "what was before is not of the run"
    (tree / "a/cpu.stat").write_text(V2.replace("7", "9").replace("250", "350"))
    assert throttling.read() == (2, 0, 100_000)
    groups[0] = tree / "c"  # the process moves to a group that was throttled before
    (tree / "c").mkdir()
    (tree / "c/cpu.stat").write_text("nr_periods 900\nnr_throttled 800\nthrottled_usec 7000\n")
    assert throttling.read() == (2, 0, 100_000)


def test_groups_of_version_1_whose_mount_begins_inside_a_container(tmp_path: Path) -> None:
    tree = tmp_path / "cpu"
    (tree / "in").mkdir(parents=True)
    mounts = (
        f"30 1 0:9 /docker/x {tree} rw - cgroup cgroup rw,cpu,cpuacct\n"
        f"31 1 0:9 /docker/x {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
    )
    lines = "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x/in\n0::/\n"
    groups = cpu_contention.chain(proc(tmp_path / "proc", lines, mounts))
    assert groups == [tree / "in", tree]
    (tree / "cpu.stat").write_text(V1)
    throttling = cpu_contention.Throttling(lambda: groups)
    throttling.read()
    (tree / "cpu.stat").write_text(V1.replace("3", "4").replace("250000", "251000"))
    assert throttling.read() == (0, 1, 1000)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(cpu_contention.NoCounterError, match="no control group of this process"):
        cpu_contention.chain(proc(tmp_path / "proc", "0::/\n", "1 1 0:1 / / rw - ext4 sda rw\n"))
    with pytest.raises(cpu_contention.NoCounterError, match=r"cpu\.stat: No such file"):
        cpu_contention.Throttling(lambda: [tmp_path]).read()
    for absent in (
        lambda: cpu_contention.pressure(tmp_path), lambda: cpu_contention.core_times(tmp_path),
        lambda: cpu_contention.Waiting(lambda: [1], tmp_path).read(),
        lambda: cpu_contention.cores_of(2**22 + 1),  # no pid is so large (proc_sys_kernel(5))
    ):  # fmt: skip
        with pytest.raises(cpu_contention.NoCounterError):
            absent()


def test_of_several_processes_the_one_that_waited_longest_counts(tmp_path: Path) -> None:
    def say(pid: int, text: str) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "schedstat").write_text(text)

    waiting = cpu_contention.Waiting(lambda: [1, 2], tmp_path)
    say(1, "10 10 1\n")
    say(2, "90 90 9\n")
    assert waiting.read() == (0, 0, 0)
    say(1, "20 60 3\n")
    say(2, "95 91 10\n")
    assert waiting.read() == (10, 50, 2)
    say(2, "97 99 11\n")
    assert waiting.read() == (12, 58, 3)


def test_the_hottest_core_counts(tmp_path: Path) -> None:
    for core, ms in ((0, 5), (1, 7), (2, 9)):
        place = tmp_path / f"cpu{core}" / "thermal_throttle"
        place.mkdir(parents=True)
        (place / "core_throttle_total_time_ms").write_text(f"{ms}\n")
    assert cpu_contention.heat({0, 1}, tmp_path) == 7_000_000
    with pytest.raises(cpu_contention.NoCounterError, match="does not count thermal throttling"):
        cpu_contention.heat({3}, tmp_path)


def test_a_counter_that_is_absent_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> int:
        raise cpu_contention.NoCounterError("no PSI here")

    monkeypatch.setattr(cpu_contention, "pressure", gone)
    counters = Counters(lambda: [os.getpid()])
    found = counters.read()
    assert counters.unmade["pressure"] == "no PSI here"
    assert set(TAKEN) - set(found) <= {"pressure_ns", "heat_ns"}


@pytest.mark.parametrize(
    ("what", "check"),
    [("chain", "throttling"), ("pressure", "pressure"), ("core_times", "cores"), ("heat", "heat")],
)
@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), ValueError("no integer"), KeyError(3)]
)
def test_whatever_a_counter_answers_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch, what: str, check: str, error: Exception
) -> None:
    """Shows that a counter that cannot be read (a closed control group, an unknown file format) leaves only
    its own check unmade.
    """

    def fail(*_: object) -> None:
        raise error

    whole = set(Counters(lambda: [os.getpid()]).read())
    monkeypatch.setattr(cpu_contention, what, fail)
    counters = Counters(lambda: [os.getpid()])
    found = counters.read()
    assert check in counters.unmade and counters.unmade[check] in (str(error), repr(error))
    owned = {"throttling": TAKEN[:3], "pressure": TAKEN[6:7], "cores": TAKEN[7:13], "heat": TAKEN[13:]}
    assert whole - set(found) <= set(owned[check]), "the others are there"


def test_a_schedstat_of_zeros_is_none(tmp_path: Path) -> None:
    """Shows that schedstat with only zeros, from a kernel that does not count (delayacct off), is
    no counter.
    """
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "schedstat").write_text("0 0 0\n")
    with pytest.raises(cpu_contention.NoCounterError, match="no process of the lab has a schedstat"):
        cpu_contention.Waiting(lambda: [1], tmp_path).read()


def test_a_process_that_is_stopped_has_a_late_beat(tmp_path: Path) -> None:
    """Shows that a stop (SIGSTOP) of the heartbeat's process makes a heartbeat late, as when a hypervisor
    pauses the lab's kernel.
    """
    code = (
        "import sys, pathlib; from orchestrator.lab.heartbeat import Heartbeat; "
        "w = Heartbeat(pathlib.Path(sys.argv[1]), 0); w.start(); print('go', flush=True); "
        "sys.stdin.read(); w.stop()"
    )
    path = tmp_path / "disturbance.csv"
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"go\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.5)  # the process stays stopped for this long
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(b"")
    lines = [dict(zip(path.read_text().splitlines()[0].split(","), row.split(","), strict=True))
             for row in path.read_text().splitlines()[1:]]  # fmt: skip
    assert max(int(line["worst_ns"]) for line in lines) >= 400_000_000
    assert all(line["throttled_ns"] == "" for line in lines), "beats alone"


class Processes:
    """Simulates /proc: process 1 is init, 10 the lab process, 11 its launcher; `say` adds further ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        (path / "self").mkdir(parents=True)
        for pid, parent in ((1, 0), (10, 1), (20, 1)):
            self.say(pid, "S", parent)
        self.say(11, "S", 10, "vnet-agent")

    def say(self, pid: int, state: str, parent: int, name: str = "x") -> None:
        (self._path / str(pid)).mkdir(exist_ok=True)
        (self._path / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {parent} 0 0\n")

    def end(self, pid: int) -> None:
        (self._path / str(pid) / "stat").write_text("")  # an open file now reads empty, as in /proc
        (self._path / str(pid) / "stat").unlink()
        (self._path / str(pid)).rmdir()


def test_a_stopped_process_of_the_lab_is_found_and_no_other(tmp_path: Path) -> None:
    there = Processes(tmp_path)
    there.say(12, "S", 10)
    there.say(13, "S", 12)
    there.say(20, "T", 1)
    stopped = StoppedProcesses(10, 2, 1, StoppedChildren(), tmp_path)
    assert [stopped.look() for _ in range(25)] == [0] * 25
    there.say(13, "T", 12, "mos ) quitto")
    assert 1 in [stopped.look() for _ in range(3)]
    there.say(13, "S", 12, "mos ) quitto")
    there.say(11, "T", 10, "vnet-agent")
    assert 1 in [stopped.look() for _ in range(3)], "the launcher"
    assert list(stopped.names) == ["mos ) quitto (13)", "vnet-agent (11)"]
    there.end(11)
    assert [stopped.look() for _ in range(25)] == [0] * 25, "it has ended"


def test_what_an_agent_starts_is_read_from_its_fork_on(tmp_path: Path) -> None:
    there = Processes(tmp_path)
    there.say(30, "S", 11, "vnet-agent")
    there.say(31, "S", 30, "vnet-agent")  # has not yet executed its program
    stopped = StoppedProcesses(10, 4, 1, StoppedChildren(), tmp_path)
    assert not any(stopped.look() for _ in range(10))
    there.say(31, "T", 30, "mosquitto")
    assert any(stopped.look() for _ in range(2))


def test_the_launchers_children_count_by_its_events_alone(tmp_path: Path) -> None:
    there = Processes(tmp_path)
    there.say(30, "T", 11, "vnet-agent")
    children = StoppedChildren()
    stopped = StoppedProcesses(10, 4, 1, children, tmp_path)
    assert not any(stopped.look() for _ in range(10)), "its state is not read"
    children.stopped("agent of node a")
    assert [stopped.look() for _ in range(3)] == [1, 1, 1]
    children.continued("agent of node a")
    assert [stopped.look() for _ in range(2)] == [1, 0], "it was stopped since the last look"
    children.stopped("agent of node a")
    children.stopped("agent of node b")
    children.continued("agent of node a")
    children.continued("agent of node b")
    assert [stopped.look() for _ in range(2)] == [2, 0], "short stops count, too"
    assert list(stopped.names) == ["agent of node a", "agent of node b"]


@pytest.mark.parametrize(("each", "every"), [(EACH, EVERY), (EACH_IN_GUEST, EVERY_IN_GUEST)])
def test_a_program_that_stood_still_for_less_than_half_a_second_is_found(
    tmp_path: Path, each: int, every: int, request: pytest.FixtureRequest
) -> None:
    """Shows that a program stopped for 0.4 s (8 beats) is found at any moment, among 700 agents and a
    thousand foreign processes.
    """
    there = Processes(tmp_path)
    for pid in range(100, 1100):
        there.say(pid, "S", 1)
    for pid in range(2000, 2700):
        there.say(pid, "S", 11, "vnet-agent")
    for pid in (2700, 2701, 2702):
        there.say(pid, "S", 2000, "mosquitto")
    stopped = StoppedProcesses(10, each, every, StoppedChildren(), tmp_path)
    request.addfinalizer(lambda: [os.close(file) for file in stopped._files.values()])
    assert not any(stopped.look() for _ in range(40))
    for broker in (2700, 2702):
        there.say(broker, "T", 2000, "mosquitto")
        assert any(stopped.look() for _ in range(8))
        there.say(broker, "S", 2000, "mosquitto")
        for _ in range(13):
            stopped.look()
    assert list(stopped.names) == ["mosquitto (2700)", "mosquitto (2702)"]
    for _ in range(1500):
        stopped.look()
    assert len(stopped._files) <= 8, "only files of what is read in turn stay open"


def test_what_is_written_is_what_is_read() -> None:
    assert [*BEATS, *TAKEN, STOPPED] == list(disturbance.COLUMNS)


def test_no_thread_is_a_reason_and_nothing_to_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    heartbeat = Heartbeat(tmp_path / "disturbance.csv", 0)
    with pytest.raises(LabError, match="no thread beside the lab"):
        heartbeat.start()
    heartbeat.stop()


def test_a_full_disk_ends_the_heartbeat_and_nothing_else() -> None:
    heartbeat = Heartbeat(Path("/dev/full"), 0)
    heartbeat.start()
    heartbeat.stop()
