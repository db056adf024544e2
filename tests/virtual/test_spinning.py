"""Tests that a program that only computes is distinguished from one that makes system calls, with processes
like those of a guest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.kernel.virtual.spinning import Spinning
from orchestrator.kernel.virtual.watch import Watchdog

LEAST_S = 0.3
PATIENCE_S = 60.0
# The first process stands for the guest's kernel, the second for one of its programs.
QUIET = "time.sleep(100)"
BUSY = "\n    while True: pass"
GUEST = """
import os, signal, sys, time
def say(*_):
    os.write(1, b"lab-runs: time=5 idle=0 machine=meter7 pid=42 program=spin\\n")
signal.signal(signal.SIGUSR2, say)
if os.fork() == 0:
    {program}
os.write(1, b"up\\n")
while True:
    {kernel}
"""


@contextmanager
def guest(place: Path, *, kernel: str, program: str) -> Iterator[int]:
    """Yields the process number of a session's leader that does what `kernel` says, with a child that does
    what `program` says.
    """
    script = GUEST.format(kernel=kernel, program=program)
    console = place / "console.log"
    with console.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out, start_new_session=True)
    try:
        while "up" not in console.read_text():
            assert process.poll() is None
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def looked(spinning: Spinning, until_s: float) -> float | None:
    """Returns the first answer within `until_s` seconds that names a CPU time; None if there is none."""
    deadline = time.monotonic() + until_s
    while time.monotonic() < deadline:
        if (found := spinning.look()) is not None:
            return found
        time.sleep(0.05)
    return None


def test_a_program_that_only_computes_is_found(tmp_path: Path) -> None:
    with guest(tmp_path, kernel=QUIET, program=BUSY) as pid:
        found = looked(Spinning(pid, LEAST_S), PATIENCE_S)
    assert found is not None and found > LEAST_S


def test_a_kernel_that_works_and_one_that_waits_are_left_alone(tmp_path: Path) -> None:
    for kernel, program in (("pass", BUSY), (QUIET, QUIET)):
        with guest(tmp_path, kernel=kernel, program=program) as pid:
            assert looked(Spinning(pid, LEAST_S), 3.0) is None


def test_the_watchdog_names_the_program_long_before_its_patience_ends(tmp_path: Path) -> None:
    now = iter(range(10_000))
    with guest(tmp_path, kernel=QUIET, program=BUSY) as pid:
        dog = Watchdog(pid, tmp_path, 40.0, 10**18, lambda: 0.0 if (t := next(now)) < 2 else float(t))
        dog._stall_s = 10_000.0
        deadline = time.monotonic() + PATIENCE_S
        while (said := dog.look()) is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert said is not None and "s of CPU time: node meter7: process 42 (spin) computes without end" in said
