"""Tests a lab process that starts before its lab is planned: it waits, becomes the lab's process, or ends
unused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.kernel import ahead, detached
from orchestrator.kernel.lab_command import LIGHT, environment

HELP = [sys.executable, *LIGHT, "--help"]
SECONDS = 60.0


@pytest.fixture
def begun() -> Iterator[ahead.Begun]:
    ahead.begin()
    (one,) = ahead._begun
    yield one
    if ahead._begun:  # an unused process ends when the process that began it is gone
        ahead._begun.pop().orders.close()
        assert one.process.wait(SECONDS) == 0


def started(argv: Sequence[str], run_dir: Path) -> detached.DetachedLab:
    env = environment(os.environ, {"kind": "host"}, {})
    return detached.spawn(argv, run_dir, run_dir / "control.sock", logs=["lab.log"], env=env, lifeline=False)


def said(run_dir: Path) -> str:
    return (run_dir / "raw" / "progress.jsonl").read_text()


def test_it_becomes_the_labs_with_arguments_and_files(begun: ahead.Begun, tmp_path: Path) -> None:
    lab = started(HELP, tmp_path)
    assert lab.process is begun.process
    assert lab.wait(SECONDS) == 0
    assert said(tmp_path).startswith("usage: python -m orchestrator.lab")


def test_its_errors_go_to_the_log(begun: ahead.Begun, tmp_path: Path) -> None:
    lab = started([*HELP[:-1], "no-plan.json"], tmp_path)
    assert lab.process is begun.process
    assert lab.wait(SECONDS) == 2
    assert "required" in (tmp_path / "raw" / "lab.log").read_text()


def test_another_program_does_not_take_it(begun: ahead.Begun, tmp_path: Path) -> None:
    lab = started([sys.executable, "-c", "print('other')"], tmp_path)
    assert lab.process is not begun.process and lab.wait(SECONDS) == 0
    assert said(tmp_path) == "other\n" and begun.process.poll() is None


def test_one_that_has_died_is_done_without(begun: ahead.Begun, tmp_path: Path) -> None:
    begun.process.kill()
    begun.process.wait()
    lab = started(HELP, tmp_path)
    assert lab.process is not begun.process and lab.wait(SECONDS) == 0


def test_only_one_waits(begun: ahead.Begun) -> None:
    ahead.begin()
    assert ahead._begun == [begun]


def test_none_waits_and_the_lab_starts_by_itself(tmp_path: Path) -> None:
    assert not ahead._begun
    assert started(HELP, tmp_path).wait(SECONDS) == 0
    assert said(tmp_path).startswith("usage: ")
