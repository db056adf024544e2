"""Starts a launcher with two or more nodes on one bridge, in namespaces of its own, for the tests of the
agent.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.lab.readback import not_forwarding

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "vnet-agent"


class Launcher:
    """Runs the real launcher and sends it requests over its socket; counts requests, and keeps the events
    that arrive between answers.
    """

    def __init__(self, directory: Path, lab: str) -> None:
        self.directory, self.lab = directory, lab
        self.path = directory / "agent.sock"
        self.logs = directory / "logs"
        self.logs.mkdir()
        self.process = subprocess.Popen(
            [BINARY, "launch", "--socket", self.path, "--log", directory / "agent.log", "--logs", self.logs]
        )
        deadline = time.monotonic() + 10
        while not self.path.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        self.events: list[dict[str, Any]] = []
        self.number = 0
        self.connect()

    def connect(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(self.path))
        self.lines = self.socket.makefile("r")

    def send(self, op: str, **fields: Any) -> int:
        self.number += 1
        self.socket.sendall((json.dumps({"id": self.number, "op": op, **fields}) + "\n").encode())
        return self.number

    def answer(self, number: int) -> dict[str, Any]:
        """Returns the answer to request `number`; lines that arrive before it are kept in `events`."""
        while True:
            line = json.loads(self.lines.readline())
            if line.get("id") == number and "ok" in line:
                return dict(line)
            self.events.append(line)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.answer(self.send(op, **fields))

    def do(self, op: str, **fields: Any) -> dict[str, Any]:
        """Sends a request as `ask` does, and asserts that it succeeds."""
        answer = self.ask(op, **fields)
        assert answer["ok"], answer["error"]
        return answer

    def until(self, match: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Waits for an event that matches, and returns it."""
        for event in self.events:
            if match(event):
                return event
        while True:
            event = json.loads(self.lines.readline())
            self.events.append(event)
            if match(event):
                return dict(event)

    @property
    def core(self) -> str:
        return f"vnet-{self.lab}"

    def netns(self, node: str) -> str:
        return f"vnet-{self.lab}.{node}"

    def create(self, names: list[str]) -> dict[str, int]:
        nodes = [
            {"name": n, "netns": self.netns(n), "hostname": n, "cgroup_procs": [], "ipv6": False}
            for n in names
        ]
        pids: dict[str, int] = self.do("create", core=self.core, nodes=nodes)["pids"]
        return pids

    def wire(self, names: list[str]) -> dict[str, Any]:
        """Connects the nodes to one bridge: node i gets 10.77.0.(i+1)/16 on eth0, whose other end is p<i>."""
        steps = ["link add br0 type bridge forward_delay 0", "link set br0 up"]
        for i, name in enumerate(names):
            steps.append(f"link add p{i} type veth peer name eth0 netns {self.netns(name)}")
            steps.append(f"link set p{i} master br0 up")
        run = ["ip", "-n", self.core, "-batch", "-"]
        subprocess.run(run, input="\n".join(steps), text=True, check=True)
        nodes = [{"name": n, "interfaces": [interface(i)]} for i, n in enumerate(names)]
        answer = self.do("configure", nodes=nodes, core_devices=[f"p{i}" for i in range(len(names))])
        self.wait_for_ports()
        return answer

    def wait_for_ports(self) -> None:
        """Waits until all bridge ports forward, as the lab process does: earlier packets would be lost, and
        TCP would retry only a second later.
        """
        deadline = time.monotonic() + 10
        show = ["ip", "-n", self.core, "-j", "-d", "link"]
        while waiting := not_forwarding(json.loads(subprocess.check_output(show)), None):
            assert time.monotonic() < deadline, f"ports do not forward: {waiting}"

    def lab_up(self, names: list[str]) -> None:
        self.create(names)
        self.wire(names)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(20)


def interface(index: int, mtu: int = 1500) -> dict[str, Any]:
    address = f"10.77.{index // 250}.{index % 250 + 1}"
    mac = f"02:00:00:00:{index // 256:02x}:{index % 256:02x}"
    return {"name": "eth0", "address": address, "prefix": 16, "mtu": mtu, "mac": mac}


def leftovers(lab: str) -> list[str]:
    return [p.name for p in Path("/run/netns").glob(f"vnet-{lab}*")]
