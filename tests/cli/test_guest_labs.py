"""Tests the same commands on a lab in a User-Mode Linux guest: impairments read back, exec, clones, down."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.kernel.uml.binaries import find_binaries

PROJECT = Path(__file__).resolve().parents[2]
PAIR = str(PROJECT / "topologies" / "pair.yaml")

pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(
        not find_binaries(), reason="no User-Mode Linux kernel (apt-get install user-mode-linux)"
    ),
    pytest.mark.skipif(not (PROJECT / "target/release/vnet-agent").exists(), reason="the agent is not built"),
]


@pytest.fixture
def pair(vnet: Any) -> Iterator[Any]:
    vnet("up", PAIR, "--kernel", "uml")
    try:
        yield vnet
    finally:
        vnet("down", "pair")


def test_a_guest_that_died_alone_is_told_until_its_lab_is_taken_down(pair: Any) -> None:
    recorded = json.loads((pair.state / "pair" / "lab.json").read_text())
    (guest,) = [process["pid"] for process in recorded["processes"] if process["role"] == "uml"]
    os.kill(guest, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not (lab := json.loads(pair("ls", "--json").stdout)[0])["state"].startswith("dead"):
        assert time.monotonic() < deadline, lab
    died = "the guest ended by itself (status -9) before the lab did"
    assert lab["state"] == f"dead: {died}; vnet down pair clears it"
    told = pair("exec", "pair", "left", "--", "true", status=1).stderr
    assert f"lab pair: died: {died}; what it left is in {lab['run_dir']}" in told
    assert "runs already" in pair("up", PAIR, "--kernel", "uml", status=1).stderr


def test_a_guest_labs_life(pair: Any) -> None:
    (lab,) = json.loads(pair("ls", "--json").stdout)
    assert (lab["kernel"], lab["state"]) == ("uml", "up")
    pair("link", "pair", "left-access", "--delay", "30 ms", "--rate", "1 Mbit/s")
    read = json.loads(pair("inspect", "pair", "--json").stdout)["links"]["left-access"]
    for side in ("forward", "reverse"):
        assert (read[side]["read"]["delay_ns"], read[side]["read"]["rate_bps"]) == (30_000_000, 1_000_000)
    qdisc = pair("exec", "pair", "left", "--", "tc", "qdisc", "show", "dev", "eth0").stdout
    assert "delay 30ms" in qdisc and "rate 1Mbit" in qdisc
    assert sorted(pair("exec", "pair", "*", "--", "hostname").stdout.split()) == [
        "left",
        "left",
        "right",
        "right",
    ]
    pair("exec", "pair", "right", "--", "sh", "-c", "exit 9", status=9)
    found = {line.partition("=")[0] for line in pair("exec", "pair", "left", "--", "env").stdout.splitlines()}
    assert "PATH" in found and not {name for name in found if name.startswith(("PYTHON", "VNET_"))}
    pair("set", "pair", "left", "--cpu-limit", "0.25 cores")
    limits = json.loads(pair("inspect", "pair", "left", "--json").stdout)["nodes"]["left"]["limits"]
    assert limits["cpu_cores"] == pytest.approx(0.25)
    assert json.loads(pair("add", "pair", "left", "--idle", "--json").stdout)["added"][0]["node"] == "left2"
    assert pair("exec", "pair", "left2", "--", "hostname").stdout == "left2\n"
    pair("link", "pair", "left-access", "--down")
    assert "NO-CARRIER" in pair("exec", "pair", "left", "--", "ip", "link", "show", "eth0").stdout
