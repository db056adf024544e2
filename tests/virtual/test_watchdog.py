"""Tests the watchdog's verdicts on files and answers like a kernel's, without a lab and without waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.virtual.kernel import STALL_NS, setting
from orchestrator.kernel.virtual.watch import Watchdog

UNTIL_NS = 10_000_000_000
ANSWERING = """
import signal, sys, time
times = iter({times})
def say(*_):
    print(f"lab-runs: time={{next(times)}} idle=0 machine=meter7 pid=42 program=spin fast", flush=True)
signal.signal(signal.SIGUSR2, say)
print("up", flush=True)
while True:
    time.sleep(10)
"""


class Kernel:
    """A process that answers SIGUSR2 as the lab kernel does, with the next of the virtual `times`; None is an
    unreadable answer.
    """

    def __init__(self, raw: Path, times: list[int | None]) -> None:
        self.console = raw / "console.log"
        argv = [sys.executable, "-c", ANSWERING.format(times=times)]
        with self.console.open("wb") as out:
            self.process = subprocess.Popen(argv, stdout=out)
        while "up" not in self.console.read_text():
            assert self.process.poll() is None

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def watch(raw: Path, times: list[int | None], at: list[float]) -> list[str | None]:
    """Returns the watchdog's answer at each of the clock's times `at`, with a patience of 10 s."""
    now = iter([0.0, 0.0, *at])
    kernel = Kernel(raw, times)
    try:
        dog = Watchdog(kernel.process.pid, raw, 10.0, UNTIL_NS, lambda: next(now))
        return [dog.look() for _ in at]
    finally:
        kernel.end()


def test_a_clock_that_stands_is_ended_with_the_name_of_who_runs(tmp_path: Path) -> None:
    said = watch(tmp_path, [5, 5], [1.0, 6.0, 11.0])
    assert said[:2] == [None, None]
    assert said[2] is not None
    assert "node meter7: process 42 (spin fast)" in said[2] and "for 11 s" in said[2]


def test_a_slow_lab_is_left_alone(tmp_path: Path) -> None:
    assert watch(tmp_path, [5, 6, 6, 7], [6.0, 11.0, 17.0, 22.0]) == [None] * 4


def test_a_slow_lab_whose_kernel_did_not_answer_at_first_is_left_alone(tmp_path: Path) -> None:
    """Shows that a slow lab is not ended after a single unreadable answer, which happens on a
    busy machine.
    """
    assert watch(tmp_path, [None, 5, 6], [6.0, 11.0, 17.0]) == [None] * 3


def test_a_kernel_that_never_answers_is_ended_after_twice_the_patience(tmp_path: Path) -> None:
    said = watch(tmp_path, [None] * 3, [6.0, 11.0, 20.0])
    assert said[:2] == [None, None]
    assert said[2] == "nothing was written for 20 s of wall-clock time and the guest's kernel does not answer"


def test_a_lab_that_sleeps_on_beyond_its_scenario_is_ended(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(f"t_ns,node\n1,a\n{UNTIL_NS + 3_000_000_000},a\n")
    said = watch(tmp_path, [], [1.0])
    assert said[0] is not None and "3 s beyond the latest end" in said[0]


def test_a_sample_cut_in_two_is_not_a_time(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("t_ns,node\n1,a\n99999999999999")
    assert watch(tmp_path, [], [1.0]) == [None]


def test_a_file_that_the_lab_removes_meanwhile_ends_no_run(tmp_path: Path) -> None:
    # the directory lists this entry, and its target does not exist
    (tmp_path / ".reserve").symlink_to(tmp_path / "gone")
    assert watch(tmp_path, [], [1.0]) == [None]


def test_patience_is_a_setting() -> None:
    assert setting("VNET_WATCHDOG", STALL_NS, {}) == STALL_NS
    assert setting("VNET_WATCHDOG", STALL_NS, {"VNET_WATCHDOG": "90 s"}) == 90_000_000_000
    with pytest.raises(KernelError, match="VNET_WATCHDOG=soon"):
        setting("VNET_WATCHDOG", STALL_NS, {**os.environ, "VNET_WATCHDOG": "soon"})
