"""Tests that programs that read the time stamp counter get the lab's time and are reproducible in virtual
time.
"""

from __future__ import annotations

import base64
import ctypes.util
import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from virtual_place import Place, Ran

Places = Callable[[str], Place]
HERE = Path(__file__).parent
TICKS_PER_NS = 2.0  # images/kernel/lab.patch, arch/x86/um/tsc.c
pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="RDTSC is an instruction of x86"),
]


def pair(place: Place, left: dict[str, Any], right: dict[str, Any]) -> None:
    """Writes a topology of two nodes with the given software, and a capture between them."""
    nodes = {
        "left": {"segment": "lan", "address": "10.50.0.1", "software": left},
        "right": {"segment": "lan", "address": "10.50.0.2", "software": right},
    }
    topology = {
        "name": "counter",
        "seed": 1,
        "segments": {"lan": {"subnet": "10.50.0.0/24"}},
        "nodes": nodes,
        "captures": {"right": {"at": "node right"}},
        "run": {"hold": "10 s", "drain": "1 s"},
    }
    (place.cwd / "counter.yaml").write_text(json.dumps(topology))


def reader(place: Place) -> dict[str, Any]:
    """Compiles the program here, because a guest on a busy machine compiles slowly, and returns its software
    entry.
    """
    made = place.cwd / "counter"
    subprocess.run(["cc", "-O2", "-o", str(made), str(HERE / "counter.c")], check=True)
    command = "base64 -d counter.text > counter && chmod +x counter && exec ./counter 10.50.0.2"
    files = {"counter.text": base64.encodebytes(made.read_bytes()).decode()}
    return {"counter": {"command": command, "files": files, "expect": "exited", "start": "ramp"}}


def found(run_dir: Path) -> dict[str, float]:
    """Returns the values that counter.c printed, by name."""
    lines = (run_dir / "raw" / "logs" / "left.counter.log").read_text().splitlines()
    return {name: float(value) for name, value in map(str.split, lines)}


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (apt-get install gcc)")


@needs_cc
def test_a_reader_of_the_counter_repeats_and_is_told_the_labs_time(places: Places) -> None:
    place = places("counter")
    pair(place, reader(place), {})
    first, second = (place.run(file="counter.yaml") for _ in range(2))
    assert first.hashes == second.hashes
    assert "pcap/right.pcap" in first.hashes
    told = found(first.run_dir)
    assert told["ticks_per_ns"] == pytest.approx(TICKS_PER_NS, rel=1e-4)
    assert told["processor"] == 0
    assert told["shortest_ticks"] >= 2  # time passes between two readings, so that waiting loops end
    assert told["waited"] == 1


@needs_cc
def test_in_real_time_the_counter_is_the_machines(places: Places) -> None:
    place = places("real-counter")
    pair(place, reader(place), {})
    done = place.vnet("run", "counter.yaml", "--kernel", "uml", "--results", "out", "--raw")
    assert done.returncode == 0, done.stderr
    told = found(next((place.cwd / "out").rglob("left.counter.log")).parents[2])
    assert told["shortest_ticks"] < 2_000  # ticks of three readings; a trap takes tens of thousands
    assert told["waited"] == 1


@pytest.mark.sweep  # test_zeromq_runs.py repeats libzmq with more receivers
@pytest.mark.skipif(ctypes.util.find_library("zmq") is None, reason="apt-get install libzmq5")
def test_a_zeromq_pair_repeats(places: Places) -> None:
    place = places("zeromq")
    files = {"pair.py": (HERE / "zeromq_pair.py").read_text()}
    common = {"files": files, "expect": "exited"}
    command = ["python3", "-S", "pair.py"]
    ask = {"command": [*command, "ask", "10.50.0.2"], "start": "ramp", **common}
    answer = {"command": [*command, "answer", "10.50.0.2"], "ready": {"log": "up"}, **common}
    pair(place, {"ask": ask}, {"answer": answer})
    first, second = (place.run(file="counter.yaml") for _ in range(2))
    for run in (first, second):
        assert ended(run, "left.ask") and ended(run, "right.answer")
    assert (first.run_dir / "pcap/right.pcap").stat().st_size > 300 * 200
    assert first.hashes == second.hashes


def ended(run: Ran, software: str) -> bool:
    return (run.run_dir / "raw" / "logs" / f"{software}.log").read_text().endswith("end\n")
