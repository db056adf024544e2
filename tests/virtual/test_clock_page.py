"""Tests that a program reads the lab's clocks without a system call, and reads the same as by one: each
reading takes 256 ns, no clock goes back, and a wait by the clock ends.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import Place

CLOCKS_C = Path(__file__).with_name("clocks.c")
READING_NS = 256  # images/kernel/lab.patch, clock-page.h
TICK_NS = 1_000_000
pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (apt-get install gcc)"),
]


def written(place: Place, hold: str = "5 s") -> None:
    """Compiles the program here and writes a topology whose only node runs it during `hold`."""
    made = place.cwd / "clocks"
    subprocess.run(["cc", "-O2", "-pthread", "-o", str(made), str(CLOCKS_C)], check=True)
    command = "base64 -d clocks.text > clocks && chmod +x clocks && exec ./clocks"
    files = {"clocks.text": base64.encodebytes(made.read_bytes()).decode()}
    software = {"clocks": {"command": command, "files": files, "expect": "exited", "start": "ramp"}}
    topology = {
        "name": "clocks",
        "seed": 1,
        "segments": {"lan": {"subnet": "10.50.0.0/24"}},
        "nodes": {"reader": {"segment": "lan", "software": software}},
        "run": {"hold": hold, "drain": "1 s"},
    }
    (place.cwd / "clocks.yaml").write_text(json.dumps(topology))


def found(results: Path) -> dict[str, int]:
    """Returns the values that clocks.c printed, by name."""
    text = next(results.rglob("reader.clocks.log")).read_text()
    return {name: int(value) for name, value in map(str.split, text.splitlines())}


def test_in_virtual_time_the_page_and_the_kernel_agree(places: Callable[[str], Place]) -> None:
    place = places("clocks")
    written(place)
    first, second = (place.run(file="clocks.yaml") for _ in range(2))
    assert first.hashes == second.hashes
    told = found(first.run_dir)
    for clock in ("real", "mono", "raw", "boot"):
        # the program reads the page and makes a call in turns; an event of the kernel between two readings
        # may take longer
        assert told[f"{clock}_least"] == READING_NS and told[f"{clock}_most"] < TICK_NS
    assert told["disagreements"] == told["went_back"] == 0
    assert READING_NS <= told["a_reading_ns"] < 1.1 * READING_NS
    assert READING_NS <= told["a_call_ns"] < 1.1 * READING_NS
    assert told["waited_readings"] == pytest.approx(50_000_000 / READING_NS, rel=0.02)
    assert 50 <= told["cpu_ms"] < 2_000  # readings take the node's CPU time


def test_in_real_time_the_clocks_are_the_machines(places: Callable[[str], Place]) -> None:
    place = places("real-clocks")
    written(place, "40 s")  # a long hold, because the program gets little CPU time on a busy machine
    done = place.vnet("run", "clocks.yaml", "--kernel", "uml", "--results", "out", "--raw")
    assert done.returncode == 0, done.stderr
    told = found(place.cwd / "out")
    assert min(told[f"{clock}_least"] for clock in ("real", "mono", "raw", "boot")) >= 0
    assert told["went_back"] == 0
