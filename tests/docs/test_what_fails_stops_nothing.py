"""Tests tests/parts.py: every part runs, and the end shows the failures of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.project import PROJECT

FAILED_PYTEST = """\
printf '%s\\n' 'FAILED test_a.py::test_x - assert 0' '2 failed, 5 passed, 1 skipped in 3.2s'; exit 1"""
FAILED_RUST = """\
printf '%s\\n' 'test roles::tcp::ends ... FAILED' \\
  'test result: FAILED. 7 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out'; exit 101"""
ALONE = """\
printf '%s\\n' 'FAILED tests/test_b.py::test_y' '1 failed, 9 passed in 4.00s' '1 passed in 0.10s'"""


def run(*words: str) -> tuple[int, list[str]]:
    command = [sys.executable, PROJECT / "tests" / "parts.py", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.parametrize("options", [(), ("--side-by-side", "2")])
def test_a_part_that_fails_stops_no_other(options: tuple[str, ...]) -> None:
    status, lines = run(
        *options,
        "lint: echo too long; false",
        f"Rust: {FAILED_RUST}",
        f"unit: {FAILED_PYTEST}",
        "last: echo ok",
    )
    assert status == 1 and "ok" in lines
    shown = lines[lines.index("tests: lint failed with status 1:") :]
    assert shown[:6] == [
        "tests: lint failed with status 1:",
        "  too long",
        "tests: Rust failed with status 101:",
        "  test roles::tcp::ends ... FAILED",
        "tests: unit failed with status 1:",
        "  FAILED test_a.py::test_x - assert 0",
    ]
    assert lines[-1].startswith("tests: failed: lint, Rust, unit; 12 passed, 3 failed, 3 skipped in ")


def test_what_passed_alone_is_no_failure() -> None:
    status, lines = run(f"unit: {ALONE}")
    assert status == 0
    assert lines[-1].startswith("tests: 9 passed, 1 failed among others and passed alone in ")


def test_a_process_that_keeps_the_output_open_is_not_waited_for() -> None:
    status, lines = run("leaves: sleep 60 & echo $!")
    subprocess.run(["kill", lines[0]], check=True)
    assert status == 0


def test_a_group_begins_when_all_before_it_have_ended(tmp_path: Path) -> None:
    """Shows that parts of a group run at the same time (`first` waits for a file of `second`), and that a
    later group begins after both.
    """
    status, lines = run(
        "--side-by-side",
        "2",
        f"first: until [ -e {tmp_path}/second ]; do sleep 0.05; done; touch {tmp_path}/first",
        f"second: touch {tmp_path}/second; false",
        "--side-by-side",
        "1",
        f"alone: ls {tmp_path}",
    )
    assert status == 1
    assert lines.index("first") < lines.index("second") < lines.index("tests: second failed with status 1:")
    assert [line.split()[2] for line in lines[-4:-1]] == ["passed", "FAILED", "passed"]


def test_words_that_are_no_part_are_refused() -> None:
    command = [sys.executable, PROJECT / "tests" / "parts.py", "make"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and 'write "NAME: COMMAND"' in ended.stderr
