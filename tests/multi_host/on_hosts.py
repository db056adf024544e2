"""Provides tools for tests of labs over hosts: the rack, the command line on the home machine, a run and its
files.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from machines import KERNEL, Machine
from rack import Host, Rack

from orchestrator.kernel.facts import host_facts

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PAIR = PROJECT / "topologies" / "pair.yaml"
KIND = Machine if KERNEL in os.environ else Host
NETEM = KIND is Machine or host_facts().lacks("netem") is None
# ms on each host's wire, in each direction: 20 ms there and back between two hosts
DELAY_MS = 5 if NETEM else 0
with_netem = pytest.mark.skipif(not NETEM, reason="the hosts' kernel has no netem")


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    made = Rack(Path("/tmp/r"), 3 if NETEM else 2, DELAY_MS, KIND)
    yield made
    made.close()


@pytest.fixture
def vnet(rack: Rack, tmp_path: Path) -> Iterator[CommandLine]:
    """Yields the command line on the home machine; asserts afterwards that nothing of a lab is left on any
    host.
    """
    line = CommandLine(tmp_path, Path("/tmp/s"), rack.env, patience_s=600)
    yield line
    for lab in line.labs():
        line("down", lab)
    assert not line.labs()
    for host in rack.hosts:
        assert (left := host.left()) == [], f"of a lab is left on {host.name}: {left}"


def pair() -> str:
    """Returns the text of pair.yaml, without delays if the kernel lacks netem."""
    kept = PAIR.read_text().splitlines()
    return "\n".join(line for line in kept if NETEM or "delay" not in line or "description" in line) + "\n"


def over(rack: Rack, directory: Path, at: dict[str, str], more: str = "", six: bool = False) -> Path:
    """Writes the topology `pair` with its nodes on hosts of the rack. `six`: the hosts are reached by IPv6;
    `more`: further lines of the file.
    """
    text = pair()
    used = [host for host in rack.hosts if host.name in at.values()]
    hosts = "".join(f'  {h.name}: {{machine: "{h.url6 if six else h.url}"}}\n' for h in used)
    for node, host in at.items():
        text = text.replace(f"\n  {node}:\n    segment", f"\n  {node}:\n    host: {host}\n    segment")
    file = directory / "pair.yaml"
    file.write_text(text.replace("\nsegments:", f"\nhosts:\n{hosts}\n{more}\nsegments:", 1))
    return file


def run_of(vnet: CommandLine) -> Path:
    (found,) = (vnet.cwd / "results" / "pair").iterdir()
    return found


def manifest_of(vnet: CommandLine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_of(vnet) / "manifest.json").read_text())
    return found


def lines(run: Path, kind: str) -> list[list[str]]:
    text = (run / "raw" / "messages.csv").read_text()
    return [line.split(",") for line in text.splitlines() if line.startswith(f"{kind},")]


def begun(vnet: CommandLine, file: Path, hold: str = "3600s") -> Any:
    """Starts a run, by default with a hold of one hour, and waits until it is in the hold and has
    messages.
    """
    running = vnet.start("run", str(file), "-p", f"hold={hold}", "--raw")
    results = vnet.cwd / "results" / "pair"

    def holds() -> bool:
        assert running.poll() is None, running.communicate()
        return any('"phase":"hold","done":1' in p.read_text() for p in results.glob("*/raw/progress.jsonl"))

    try:
        until(600, "the hold", holds)
    except AssertionError:
        running.kill()
        raise
    return running


def until(seconds: float, subject: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, f"waited {seconds} s for {subject}"
        time.sleep(0.1)
