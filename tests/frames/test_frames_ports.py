"""Tests the shipped NIC test through two ports: the ends of a veth pair, in a namespace that represents the
machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

PROJECT = Path(__file__).resolve().parents[2]
PORTS = ("frnic-a", "frnic-b")

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it moves interfaces between namespaces"),
    pytest.mark.skipif(
        not (PROJECT / "target/release/vnet-agent").exists(), reason="no agent (make setup builds it)"
    ),
]


@pytest.fixture
def machine() -> Iterator[str]:
    """Yields the name of a network namespace with two ports joined by a cable; asserts afterwards that both
    are back.
    """
    netns = f"frmachine-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", netns], check=True)
    try:
        subprocess.run(
            ["ip", "-n", netns, "link", "add", PORTS[0], "type", "veth", "peer", "name", PORTS[1]], check=True
        )
        yield netns
        there = json.loads(subprocess.check_output(["ip", "-n", netns, "-j", "link"]))
        assert set(PORTS) <= {entry["ifname"] for entry in there}
    finally:
        subprocess.run(["ip", "netns", "del", netns], check=True)


def test_the_ready_test_runs_through_the_ports(machine: str, tmp_path: Path) -> None:
    """Shows that the shipped NIC test runs through the ports, at a line rate that this machine can offer."""
    argv = ["nsenter", f"--net=/run/netns/{machine}", sys.executable, "-m", "orchestrator.cli.main", "run"]
    argv += [
        str(PROJECT / "topologies" / "nic-qualification.yaml"),
        "--kernel",
        "host",
        "--lab",
        f"frports-{os.getpid()}",
    ]
    values = {"nics": " ".join(PORTS), "frame_size": 512, "line_rate": "4 Mbit/s",
              "trial": "300 ms", "latency_trials": 1, "latency_trial": "300 ms",
              "burst": "100 ms", "burst_trials": 1}  # fmt: skip
    argv += [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [*argv, "--results", str(tmp_path / "out")],
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run_dir,) = (tmp_path / "out").glob("*/*")
    plan = json.loads((run_dir / "plan.json").read_text())
    (frames,) = [s["spec"] for n in plan["nodes"] for s in n["software"] if s["kind"] == "frames"]
    assert frames["bypass"] is True  # without a qdisc, so a NIC's own queue holds the sender back
    trials = pl.read_parquet(run_dir / "trials.parquet")
    assert trials.get_column("lost").sum() == 0 and trials.get_column("received").sum() > 0
    assert set(trials.get_column("test").to_list()) >= {"throughput", "latency", "frame-loss", "back-to-back"}
    summary = json.loads((run_dir / "summary.json").read_text())
    (found,) = [m for m in summary if m["name"] == "throughput_of_line"]
    assert 50 < found["value"] <= 100.1
