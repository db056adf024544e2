"""Tests that each liar in a lab in real time (`liars.real`) is marked by the check that has to find it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from liars.real import FILE, LIARS, Real
from liars.table import documented

sys.path.append(str(Path(__file__).parents[1] / "cli"))
from command_line import CommandLine
from test_disturbed_labs import LAB, quota

__all__ = ["quota"]  # a fixture
pytestmark = [
    pytest.mark.sweep,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root"),
]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    """Yields a command line; takes its labs down afterwards and asserts that none is left."""
    made = CommandLine(tmp_path, tmp_path / "s")
    yield made
    for lab in made.labs():
        made("down", lab)
    assert not made.labs()
    if (results := tmp_path / "results").is_mount():
        subprocess.run(["umount", results], check=True)


def ran(line: CommandLine, group: Path, real: Real) -> dict[str, Any]:
    """Returns the manifest of a run that the liar disturbed in its hold."""
    (line.cwd / "lab.yaml").write_text(FILE)
    if real.disk_bytes is not None:
        (line.cwd / "results").mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={real.disk_bytes}", "none", line.cwd / "results"]
        subprocess.run(words, check=True)
    process = line.start("run", "lab.yaml", "--kernel", "host", "--json")
    (group / "cgroup.procs").write_text(str(process.pid))
    progress, deadline = line.cwd / "results" / LAB, time.monotonic() + 90
    while '"hold"' not in "".join(f.read_text() for f in progress.glob("*/raw/progress.jsonl")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)  # what follows must act in the hold; the deadline is above
    time.sleep(0.5)
    real.disturb(line, group)
    process.communicate(timeout=90)
    (manifest,) = progress.glob("*/manifest.json")
    found: dict[str, Any] = json.loads(manifest.read_text())
    return found


@pytest.mark.parametrize("real", LIARS, ids=[real.name for real in LIARS])
def test_a_disturbance_of_real_time_is_marked(real: Real, line: CommandLine, quota: Path) -> None:
    found = ran(line, quota, real)
    codes = {w["code"] for w in found["warnings"] if w["suspect"]}
    assert found["suspect"] and (codes & set(real.codes) or found["state"] != "complete"), codes


def test_the_docs_call_each_caught() -> None:
    assert {documented()[real.name].answer for real in LIARS} == {"caught"}
