"""Tests a forked lab process: its status, its output, its open files, and its end with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.kernel.forked import Forked


def forked(work: Callable[[], int], place: Path) -> Forked:
    with (place / "out").open("wb") as output, (place / "err").open("wb") as errors:
        return Forked(work, output, errors)


def test_status_and_output_are_those_of_its_work(tmp_path: Path) -> None:
    def work() -> int:
        print("from the child")
        return 7

    assert forked(work, tmp_path).wait(10) == 7
    assert (tmp_path / "out").read_text() == "from the child\n"
    assert (tmp_path / "err").read_text() == ""


def test_an_error_is_told_and_gives_status_1(tmp_path: Path) -> None:
    def work() -> int:
        raise OSError("no such lab")

    assert forked(work, tmp_path).wait(10) == 1
    assert "OSError: no such lab" in (tmp_path / "err").read_text()


def test_it_has_a_session_and_no_file_of_its_parent(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        number = secret.fileno()

        def work() -> int:
            try:
                os.fstat(number)
            except OSError:
                return int(os.getsid(0) != os.getpid() or Path.cwd() != Path("/"))
            return 2

        assert forked(work, tmp_path).wait(10) == 0


def test_it_reads_the_end_of_its_parent(tmp_path: Path) -> None:
    child = forked(lambda: 3 + len(os.read(0, 1)), tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.05)
    child.stdin.close()
    assert child.wait(10) == 3


def test_handlers_of_its_parent_are_not_its_own(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        status = forked(lambda: int(signal.getsignal(signal.SIGTERM) != signal.SIG_DFL), tmp_path).wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == 0
