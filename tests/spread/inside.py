"""Labs over hosts of their own, inside a lab kernel: run by test_spread.py, not collected by itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lab"), str(HERE.parent / "cli")]

from command_line import CommandLine  # noqa: E402
from rack import Rack  # noqa: E402

PROJECT = HERE.parents[1]
PAIR = PROJECT / "topologies" / "pair.yaml"
DELAY_MS = 5  # on each host's wire, each way: 10 ms between two hosts


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    made = Rack(Path("/tmp/r"), 2, DELAY_MS)
    yield made
    made.close()


@pytest.fixture
def vnet(rack: Rack, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line at home; afterwards nothing of a lab is left anywhere."""
    line = CommandLine(tmp_path, Path("/tmp/s"), rack.env)
    yield line
    for lab in line.labs():
        line("down", lab)
    assert not line.labs()
    for host in rack.hosts:
        assert host.left() == [], f"something of a lab is left on {host.name}"


def over(rack: Rack, directory: Path, at: dict[str, str], text: str = "") -> Path:
    """The pair with its nodes on hosts of the rack."""
    text = text or PAIR.read_text()
    hosts = "".join(f"  {h.name}: {{machine: {h.url}, address: {h.address}}}\n" for h in rack.hosts)
    for node, host in at.items():
        text = text.replace(f"\n  {node}:\n    segment", f"\n  {node}:\n    host: {host}\n    segment")
    file = directory / "pair.yaml"
    file.write_text(text.replace("\nsegments:", f"\nhosts:\n{hosts}\nsegments:", 1))
    return file


def run_of(vnet: CommandLine) -> Path:
    (found,) = (vnet.cwd / "results" / "pair").iterdir()
    return found


def manifest_of(vnet: CommandLine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_of(vnet) / "manifest.json").read_text())
    return found


def test_a_pair(rack: Rack, vnet: CommandLine) -> None:
    file = over(rack, vnet.cwd, {"left": "h1", "right": "h2"})
    print(vnet("plan", str(file)).stdout)
    done = vnet("run", str(file), "-p", "hold=3s", "-p", "delay=60ms", "--raw")
    print(done.stderr)
    found = manifest_of(vnet)
    run = run_of(vnet)
    print({k: found[k] for k in ("hosts", "underlay", "clocks", "nodes", "warnings", "kernel")})
    print((run / "proof.json").read_text()[:3000])
    print((run / "raw" / "hosts" / "h1" / "part.log").read_text())
