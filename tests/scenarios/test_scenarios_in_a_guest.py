"""Whole experiments through the command line, in a guest kernel with real netem, mosquitto and tcpdump."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from orchestrator.kernel.binaries import find_binaries

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.uml,
    pytest.mark.slow,
    pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel (make setup installs one)"),
    pytest.mark.skipif(
        not (PROJECT / "target/release/vnet-agent").exists(), reason="no agent (make setup builds it)"
    ),
]


def run(tmp_path: Path, topology: str, **parameters: Any) -> Path:
    """Run directory of `vnet run topologies/NAME.yaml --kernel uml`: complete, and nothing left running."""
    argv = [sys.executable, "-m", "orchestrator.cli.main", "run", f"topologies/{topology}.yaml"]
    argv += ["--kernel", "uml", "--out", str(tmp_path / "out")]
    for name, value in parameters.items():
        argv += ["-p", f"{name}={value}"]
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "state").glob("*")), "a state directory was left behind"
    (run_dir,) = (tmp_path / "out" / topology).iterdir()
    assert json.loads((run_dir / "manifest.json").read_text())["state"] == "complete"
    return run_dir


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_guarantees_hold_across_a_cut_and_a_broker_restart(tmp_path: Path, qos: int) -> None:
    run_dir = run(tmp_path, "mqtt-outage", clients=8, hold="28s", qos=qos)
    events = pl.read_parquet(run_dir / "events.parquet")
    assert events["ok"].all() and {"link-down", "link-up", "restart"} <= set(events["action"])
    messages = pl.read_parquet(run_dir / "messages.parquet")
    copies = messages["copies"]
    assert messages.height > 1000
    if qos != 1:
        assert copies.max() == 1, "delivered twice"
    if qos != 0:
        assert set(messages["outcome"]) == {"acked"} and copies.min() == 1, "lost"
    # The timeline did something: a message waited for the link or the broker.
    assert messages["latency_ns"].max() > 1_000_000_000


def test_350_clients_and_every_file_of_the_contract(tmp_path: Path) -> None:
    run_dir = run(tmp_path, "mqtt-many-to-one", connect_interval="20ms", hold="5s", qos=1)
    clients = pl.read_parquet(run_dir / "clients.parquet")
    assert clients.filter(pl.col("what") == "connected")["client"].n_unique() == 351
    messages = pl.read_parquet(run_dir / "messages.parquet")
    assert set(messages["outcome"]) == {"acked"} and messages["copies"].min() == 1
    assert messages["latency_ns"].min() > 9_000_000, "netem delays by 10 ms, one jitter less at most"
    assert pl.read_parquet(run_dir / "nodes.parquet")["node"].n_unique() == 352
    assert pl.read_parquet(run_dir / "packets" / "broker.parquet").height > messages.height
    proofs = json.loads((run_dir / "proof.json").read_text())
    assert {p["quantity"] for p in proofs} >= {"delay", "jitter", "rate", "reach"}
    for name in ("summary.json", "links.parquet", "host.parquet", "report/index.html", "topology.svg"):
        assert (run_dir / name).stat().st_size > 0
