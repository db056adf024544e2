"""Tests tests/run.sh: a faulty test fails the run; a test that only fails beside others is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestrator.project import PROJECT

ONCE = """
from pathlib import Path
def test_disturbed():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
WRONG = "def test_wrong(): assert 1 == 2\n"
RIGHT = "def test_right(): pass\n"


def run(directory: Path, *tests: str) -> tuple[int, str]:
    for number, text in enumerate(tests):
        (directory / f"test_{number}.py").write_text(text)
    command = [PROJECT / "tests" / "run.sh", sys.executable, "-p", "no:xdist"]
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def test_what_passes_runs_once(tmp_path: Path) -> None:
    status, said = run(tmp_path, RIGHT)
    assert (status, "alone" in said) == (0, False)


def test_a_disturbed_test_passes_alone_and_is_named(tmp_path: Path) -> None:
    status, said = run(tmp_path, ONCE, RIGHT)
    assert status == 0
    assert said.endswith("failed among others and passed alone 2 times:\n  test_0.py::test_disturbed\n")


def test_many_at_once_do_not_run_again(tmp_path: Path) -> None:
    status, said = run(tmp_path, *[ONCE] * 7)
    assert status == 1 and "7 failed" in said


def test_what_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, "import nothing_like_it", RIGHT)[0] == 2


def test_every_failure_is_named_although_the_first_fails_alone_too(tmp_path: Path) -> None:
    status, said = run(tmp_path, WRONG, ONCE, WRONG.replace("wrong", "also_wrong"))
    assert status == 1
    assert "passed alone 2 times:\n  test_1.py::test_disturbed\n" in said
    assert said.endswith("alone:\n  test_0.py::test_wrong\n  test_2.py::test_also_wrong\n")


SWEEP = """
import pytest
from pathlib import Path
@pytest.mark.sweep
def test_disturbed():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""


def test_a_sweep_runs_alone_too(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = sweep\naddopts = -m 'not sweep'\n")
    (tmp_path / "test_0.py").write_text(SWEEP)
    command = [PROJECT / "tests" / "run.sh", sys.executable, "-p", "no:xdist", "-m", ""]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0 and "passed alone 2 times" in ended.stdout
