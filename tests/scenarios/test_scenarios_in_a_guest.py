"""Runs whole experiments through the command line, in a guest kernel with real netem, mosquitto
and tcpdump.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import is_ours

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
    """Runs `vnet run topologies/NAME.yaml --kernel uml` and returns its run directory; asserts that it is
    complete and that nothing is left running.
    """
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
    return run_file(tmp_path, PROJECT / "topologies" / f"{topology}.yaml", *words)


def run_file(tmp_path: Path, file: Path, *words: str, status: int = 0) -> Path:
    """Runs `vnet run FILE --kernel uml WORDS`, asserts its exit status and that nothing is left, and returns
    its run directory.
    """
    argv = [sys.executable, "-m", "orchestrator.cli.main", "run", str(file)]
    argv += ["--kernel", "uml", "--results", str(tmp_path / "out"), *words]
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=250)
    assert done.returncode == status, done.stderr
    assert not list((tmp_path / "state").glob("*")), "a state directory was left behind"
    (run_dir,) = (tmp_path / "out").glob("*/*")
    assert json.loads((run_dir / "manifest.json").read_text())["state"] == "complete"
    return run_dir


def edited(tmp_path: Path, topology: str, *changes: tuple[str, str]) -> Path:
    """Returns a copy of a shipped topology with texts replaced; asserts that each old text exists."""
    text = (PROJECT / "topologies" / f"{topology}.yaml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = tmp_path / f"{topology}.yaml"
    file.write_text(text)
    return file


# Rules of QoS 2, which forbids losses and duplicates; QoS 1 forbids losses only, QoS 0 duplicates only.
@pytest.mark.parametrize("qos", [*(pytest.param(n, marks=pytest.mark.sweep) for n in (0, 1)), 2])
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
        assert set(messages["outcome"]) == {"settled"} and copies.min() == 1, "lost"
    # The timeline had an effect: a message waited for the link or the broker.
    assert messages["latency_ns"].max() > 1_000_000_000


# Scenario 1 has 350 clients; each of its files has the same content with fewer.
@pytest.mark.parametrize("clients", [60, pytest.param(350, marks=pytest.mark.sweep)])
def test_many_clients_and_every_file_of_the_contract(tmp_path: Path, clients: int) -> None:
    run_dir = run(tmp_path, "mqtt-many-to-one", clients=clients, connect_interval="20ms", hold="5s", qos=1)
    sessions = pl.read_parquet(run_dir / "sessions.parquet")
    assert sessions.filter(pl.col("what") == "connected")["endpoint"].n_unique() == clients + 1
    messages = pl.read_parquet(run_dir / "messages.parquet")
    assert set(messages["outcome"]) == {"settled"} and messages["copies"].min() == 1
    assert messages["latency_ns"].min() > 9_000_000, "netem delays by 10 ms, one jitter less at most"
    assert pl.read_parquet(run_dir / "nodes.parquet")["node"].n_unique() == clients + 2
    assert pl.read_parquet(run_dir / "packets" / "broker.parquet").height > messages.height
    proofs = json.loads((run_dir / "proof.json").read_text())
    assert {p["quantity"] for p in proofs} >= {"delay", "jitter", "rate", "reach"}
    for name in ("summary.json", "links.parquet", "host.parquet", "report/index.html", "topology.svg"):
        assert (run_dir / name).stat().st_size > 0


def test_messages_that_a_killed_broker_takes_along_are_lost_at_qos_0_and_counted(tmp_path: Path) -> None:
    outage = (
        "  - {at: hold + 5 s, link-down: wan, for: 5 s, label: the bridge is cut}\n"
        "  - {at: hold + 18 s, restart: broker, software: mosquitto, label: the broker restarts}\n"
    )
    kill = (
        "  - {at: hold + 1 s, kill: broker, software: mosquitto, label: killed}\n"
        "  - {at: hold + 3 s, start: broker, software: mosquitto, label: back}\n"
    )
    file = edited(tmp_path, "mqtt-outage", (outage, kill), ("min: 28 s", "min: 1 s"))
    run_dir = run_file(tmp_path, file, "-p", "clients=5", "-p", "qos=0", "-p", "hold=6s")
    messages = pl.read_parquet(run_dir / "messages.parquet")
    lost = messages.filter(pl.col("copies") == 0)
    assert 0 < lost.height < messages.height and messages["copies"].max() == 1
    assert messages["outcome"].is_in(["sent", "unsent"]).all(), "every message has an end"
    summary = json.loads((run_dir / "summary.json").read_text())
    counted = {row["name"]: row["value"] for row in summary if row["guarantee"] == "QoS 0"}
    assert counted["messages_lost"] == lost.filter(pl.col("receiver").is_not_null()).height
    assert counted["guarantee_held"] == 1.0, "at QoS 0 loss is allowed, a duplicate is not"


@pytest.mark.skipif(
    not any(is_ours(one.path) for one in find_binaries()), reason="no lab kernel (make kernel)"
)
def test_a_suspect_run_says_why_and_fails_under_strict(tmp_path: Path) -> None:
    """Shows that a run in which a node changes its own queue is suspect, gives the reason and ends with
    status 5 under --strict.

    It runs in virtual time, where no other work on the machine marks the run as well.
    """
    command = "sleep 2; tc qdisc add dev eth0 root pfifo limit 7"
    sneak = f"      sneak: {{command: {command}, start: ramp, at_end: exited}}\n"
    mosquitto = "      mosquitto: {broker: mosquitto}\n"
    file = edited(tmp_path, "pair", (mosquitto, mosquitto + sneak))
    run_dir = run_file(tmp_path, file, "--strict", "--time", "virtual", "-p", "hold=2s", status=5)
    manifest = json.loads((run_dir / "manifest.json").read_text())
    assert manifest["suspect"] is True
    assert {w["code"] for w in manifest["warnings"] if w["suspect"]} == {"changed", "tc-used"}
    page = (run_dir / "report" / "index.html").read_text()
    notices = page[page.index('class="notices"') :]
    suspect = notices[: notices.index("</ul>")].partition('class="warning"')[0]
    assert "vnet-pair.right.eth0: requested nothing, read back pfifo" in suspect


def test_what_the_machine_adds_stands_beside_the_verdict(tmp_path: Path) -> None:
    """Shows that each proven delay has the machine's own contribution, measured on the reference wire during
    the proof.
    """
    run_dir = run(tmp_path, "pair", hold="2s")
    proof = json.loads((run_dir / "proof.json").read_text())
    delays = [one for one in proof if one["quantity"] == "delay"]
    assert delays and all(one["machine"] is not None and one["machine"] >= 0 for one in delays)
    for one in delays:
        tightest, widest = max(2e5, 0.01 * one["expected"]), max(1e6, 0.05 * one["expected"])
        assert tightest <= one["tolerance"] <= widest, "between the host kernel's and the widest"
        assert one["verdict"] == "holds" or one["machine"] > one["tolerance"]
