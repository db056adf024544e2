"""Tests limits of nodes in a real guest (cgroup v2): CPU time and memory are limited, also after a change in
the running lab.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.uml.kernel import UmlKernel, cleanup_uml
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

AGENT = Path(__file__).resolve().parents[2] / "target" / "release" / "vnet-agent"
BINARIES = find_binaries()
pytestmark = [
    pytest.mark.uml,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not BINARIES, reason="no User-Mode Linux kernel: apt-get install user-mode-linux"),
    pytest.mark.skipif(not AGENT.exists(), reason="needs target/release/vnet-agent (make setup)"),
]
TOPOLOGY = b"""
name: held
segments: {lan: {subnet: 10.20.0.0/24}}
nodes:
  small: {segment: lan, cpu_limit: 0.2 cores, memory_limit: 32 MiB, process_limit: 20, disk_limit: 2 MiB}
  free: {segment: lan}
"""
BURN = "timeout 3 sh -c 'while :; do :; done'; times"  # prints the CPU time of a busy loop of 3 s
# The program is a single process, so that no other process allocates memory while the kernel reclaims it.
HOARD = "dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null; echo $?"


class Control:
    """A client of the lab's control socket that blocks until an answer arrives."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r")

    def call(self, op: str, **fields: Any) -> tuple[dict[str, Any], str]:
        """Returns (the answer, the output of a command)."""
        self._socket.sendall(json.dumps({"id": 1, "op": op, **fields}).encode() + b"\n")
        said = b""
        for line in self._lines:
            message = json.loads(line)
            if "event" not in message:
                return message, said.decode()
            said += base64.b64decode(message.get("data", ""))
        raise AssertionError("the lab closed the connection")

    def shell(self, node: str, text: str) -> str:
        answer, said = self.call("exec", node=node, argv=["bash", "-c", text], env={}, tty=None)
        assert answer["ok"], answer
        return said

    def burnt_s(self, node: str) -> float:
        """Returns the CPU seconds that a busy loop of three seconds got on the node."""
        fields = self.shell(node, BURN).splitlines()[-1].split()  # "0m0.570s 0m0.010s"
        return sum(float(f.partition("m")[2].rstrip("s")) for f in fields)


@pytest.fixture
def control(tmp_path):
    state = Path("/tmp") / f"vnet-limits-{os.getpid()}" / "held"
    plan = make_plan(parse("held.yaml", TOPOLOGY, None))
    launch = Launch(plan, tmp_path / "run", state, AGENT, scenario=False)
    lab = UmlKernel([BINARIES[0]]).start(launch)
    try:
        for event in lab.events():
            assert event["event"] not in ("error", "end"), event
            if event.get("text") == "serving until `vnet down`":
                break
        client = Control(lab.control)
        yield client
        assert client.call("down")[0]["ok"]
        assert lab.wait(60) == 0
    finally:
        cleanup_uml(state)
        shutil.rmtree(state.parent, ignore_errors=True)


def test_limits_hold_in_a_guest_and_can_be_changed(control):
    limits = control.call("inspect")[0]["nodes"]["small"]["limits"]
    assert limits["cpu_cores"] == 0.2 and limits["memory_bytes"] == 32 << 20
    assert limits["processes"] == 20
    said = control.shell("small", "for n in $(seq 30); do sleep 9 & done; jobs -r | wc -l")
    assert "Resource temporarily unavailable" in said or "retry" in said, said
    said = control.shell("small", "head -c 3M /dev/zero > $HOME/x; stat -c %s $HOME/x; rm $HOME/x")
    assert "No space left" in said and int(said.split()[-1]) <= 2 << 20, said
    assert 0.3 < control.burnt_s("small") < 0.9, "3 s at a fifth of a core"
    free = control.burnt_s("free")
    assert free > 1.2, "without a limit the loop has a core, as far as the machine gives one"
    assert "137" in control.shell("small", HOARD), "100 MB do not fit into 32 MiB: killed"
    assert control.shell("free", HOARD).split() == ["0"]

    read = control.call("set", nodes=["free"], cpu_limit_cores=0.1)[0]["nodes"]["free"]["limits"]
    assert read["cpu_cores"] == 0.1
    assert control.burnt_s("free") < free / 2
    assert control.call("set", nodes=["small"], cpu_limit_cores=1.0)[0]["ok"]
    assert control.burnt_s("small") > 1.2
    reserved = control.call("set", nodes=["small"], cpu_reserve_cores=0.5)[0]["nodes"]["small"]["limits"]
    assert reserved["weight"] > 0
