"""Tests the launcher as it runs in a VM: it serves one peer at a serial port (here a terminal), and one node
in namespaces of its own.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import BINARY, Launcher

# The machine's own network, host name and /run must stay unchanged.
SETTLE = """
mount -t tmpfs tmpfs /run
ip link add eth0 address 02:00:00:00:00:02 type veth peer eth1 address 02:00:00:00:00:01
exec "$0" launch --port "$1"
"""


class Port:
    """Communicates with a launcher at the other end of a terminal."""

    def __init__(self) -> None:
        host, guest = os.openpty()
        tty.setraw(guest)
        argv = ["unshare", "--net", "--uts", "--mount", "sh", "-ec", SETTLE, str(BINARY), os.ttyname(guest)]
        self.process = subprocess.Popen(argv)
        self.guest = guest
        self.lines = os.fdopen(host, "r+b", buffering=0)
        self.number = 0

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.number += 1
        self.lines.write(json.dumps({"id": self.number, "op": op, **fields}).encode() + b"\n")
        text = b""
        while True:
            text += self.lines.read(65536) or b""
            *whole, text = text.split(b"\n")
            for line in map(json.loads, whole):
                if line.get("id") == self.number and "ok" in line:
                    return dict(line)

    def do(self, op: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(op, **fields)
        assert answer["ok"], answer["error"]
        return answer

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(20)
        os.close(self.guest)
        with contextlib.suppress(OSError):
            self.lines.close()


@pytest.fixture
def port() -> Iterator[Port]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built; cargo build --release -p vnet-agent")
    made = Port()
    yield made
    made.close()


def node(name: str) -> dict[str, Any]:
    return {"name": name, "netns": None, "hostname": name, "cgroup_procs": [], "ipv6": False}


def test_the_node_is_the_machine_itself_and_there_is_one(port: Port) -> None:
    assert port.do("hello")["version"]
    assert port.do("create", core=None, nodes=[node("alpha")])["pids"]["alpha"] > 0
    refused = port.ask("create", core=None, nodes=[node("beta")])
    assert "alpha, beta without netns" in refused["error"]
    port.do("destroy", nodes=["alpha"])
    port.do("create", core=None, nodes=[node("beta")])


def test_interfaces_take_the_plans_names_by_their_mac_though_they_must_change_places(port: Port) -> None:
    port.do("create", core=None, nodes=[node("alpha")])
    cards: list[dict[str, Any]] = [
        {"name": "eth0", "address": "10.9.0.1", "prefix": 24, "mtu": 1500, "mac": "02:00:00:00:00:01"},
        {"name": "eth1", "address": None, "mtu": 1400, "mac": "02:00:00:00:00:02"},
    ]
    applied = port.do("configure", nodes=[{"name": "alpha", "interfaces": cards}])["nodes"]["alpha"]
    assert applied["hostname"] == "alpha"
    first, second = applied["interfaces"]
    assert (first["name"], first["mac"], first["address"]) == ("eth0", cards[0]["mac"], "10.9.0.1")
    assert (second["mac"], second["address"], second["prefix"]) == (cards[1]["mac"], None, None)
    assert second["up"] and second["mtu"] == 1400 and not any(second["offloads"].values())


def test_quit_is_answered_before_the_launcher_ends(port: Port) -> None:
    port.do("create", core=None, nodes=[node("alpha")])
    assert port.do("quit")["ok"]
    assert port.process.wait(10) == 0


def test_files_come_out_in_chunks_and_the_clock_is_the_labs(launcher: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "messages.csv"
    file.write_bytes(bytes(range(256)) * 300)
    data, size = b"", 1
    while len(data) < size:
        chunk = launcher.do("fetch", path=str(file), offset=len(data), length=48 * 1024)
        data, size = data + base64.b64decode(chunk["data"]), chunk["size"]
    assert data == file.read_bytes()
    assert launcher.do("fetch", path=str(tmp_path / "none"), offset=0, length=1)["size"] is None
    assert (
        "request the file in chunks"
        in launcher.ask("fetch", path=str(file), offset=0, length=49_153)["error"]
    )
    offset = launcher.do("hello")["clock_offset_ns"]
    before, now, after = time.monotonic_ns(), launcher.do("clock")["now_ns"], time.monotonic_ns()
    assert before <= now - offset <= after
