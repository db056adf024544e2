"""Tests the eleven operations of the vNET paper (section II-G) on running virtual machines, through the
command line.
"""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_plans import ROOT
from lab_running import needs_vm

from orchestrator.lab import cgroup, cleanup

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow]
LAB = f"vmpaper-{os.getpid()}"
TEXT = f"""\
name: {LAB}
segments: {{lan: {{subnet: 10.34.0.0/24}}}}
nodes:
  server: {{segment: lan, kind: vm, boot_within: 240 s}}
groups:
  client: {{count: 1, segment: lan, kind: vm, boot_within: 240 s}}
run: {{hold: 1 s, drain: 1 s}}
"""


class Vnet:
    """The command line, with its labs' state and results below a directory of its own."""

    def __init__(self) -> None:
        # The path is short, because QEMU's sockets are deep below it.
        self.top = Path(tempfile.mkdtemp(prefix="vo"))
        self.top.chmod(0o711)  # lets QEMU's account enter the directory
        self.env = {**os.environ, "VNET_STATE_DIR": f"{self.top}/s", "PYTHONPATH": str(ROOT)}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            self.argv(*arguments), cwd=self.top, env=self.env, capture_output=True, text=True,
            timeout=280, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @staticmethod
    def argv(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "orchestrator.cli.main", *arguments]

    def nodes(self) -> dict[str, Any]:
        nodes: dict[str, Any] = json.loads(self("inspect", LAB, "--json"))["nodes"]
        return nodes

    def inside(self, node: str, *command: str) -> str:
        return self("exec", LAB, node, "--", *command).strip()


@pytest.fixture
def vnet() -> Iterator[Vnet]:
    made = Vnet()
    (made.top / "lab.yaml").write_text(TEXT)
    try:
        yield made
    finally:
        cleanup.destroy(LAB, made.top / "s")
        shutil.rmtree(made.top)


def quota(node: str) -> str:
    """Returns the CPU quota in the control group that libvirt made for the node's machine."""
    tops = [tree / "vnet.partition" / f"{LAB}.partition" for tree in cgroup.trees()]
    found = [f for t in tops for n in ("cpu.cfs_quota_us", "cpu.max") for f in t.glob(f"qemu-*{node}*/{n}")]
    return found[0].read_text().split()[0]


def test_every_operation_of_the_paper_on_machines_that_run(vnet: Vnet) -> None:
    # --- operation: begin executing the chosen scenario; power up all VMs
    vnet("run", "lab.yaml", "--keep", "--raw", "--kernel", "host")
    nodes = vnet.nodes()
    assert {name: node["state"] for name, node in nodes.items()} == {
        "server": "running",
        "client1": "running",
    }
    first = vnet.inside("client1", "cat", "/proc/sys/kernel/random/boot_id")

    # --- operation: set the MTU of specific nodes
    vnet("set", LAB, "client1", "--mtu", "1280")
    assert vnet.inside("client1", "cat", "/sys/class/net/eth0/mtu") == "1280"
    assert vnet.inside("server", "cat", "/sys/class/net/eth0/mtu") == "1500"

    # --- operations: set a CPU limit with MHz resolution; set a CPU reservation
    vnet("set", LAB, "client1", "--cpu-limit", "1501 MHz")
    limits = vnet.nodes()["client1"]["limits"]
    assert limits["cpu_mhz"] == pytest.approx(1501, abs=0.1)
    assert int(quota("client1")) == limits["quota_us"]
    vnet("set", LAB, "server", "--cpu-reserve", "0.5 cores")
    weights = {name: node["limits"]["weight"] for name, node in vnet.nodes().items()}
    share = weights["server"] / sum(weights.values()) * (os.cpu_count() or 1)
    assert share == pytest.approx(0.5, rel=0.01), "cores, when both want all that there are"

    # --- operation: change a VM's network host name
    vnet("set", LAB, "client1", "--hostname", "meter-one")
    assert vnet.inside("client1", "hostname") == "meter-one"

    # --- operation: restart specific VMs (another boot keeps all settings)
    vnet("restart", LAB, "client1")
    assert vnet.inside("client1", "cat", "/proc/sys/kernel/random/boot_id") != first
    assert vnet.inside("client1", "hostname") == "meter-one"
    assert vnet.inside("client1", "cat", "/sys/class/net/eth0/mtu") == "1280"
    assert int(quota("client1")) == limits["quota_us"]

    # --- operation: clone VMs from a template
    (added,) = json.loads(vnet("add", LAB, "client", "--json"))["added"]
    assert added["node"] == "client2"
    assert vnet.inside("client2", "hostname") == "client2"
    assert " 0% packet loss" in vnet.inside("client2", "ping", "-c", "3", "-W", "5", "10.34.0.1")

    # --- operation: issue a custom command on chosen nodes
    said = vnet("exec", LAB, "client*", "--", "sh", "-c", "echo $((6*7))")
    assert sorted(line.split() for line in said.splitlines()) == [["client1", "42"], ["client2", "42"]]

    # --- operation: power on specific VMs, after power off
    pid = int(vnet.nodes()["client2"]["pid"])
    vnet("stop", LAB, "client2")
    assert not Path(f"/proc/{pid}").exists() and vnet.nodes()["client2"]["state"] == "stopped"
    vnet("start", LAB, "client2")
    assert vnet.inside("client2", "true") == ""

    # destroy VMs
    pid = int(vnet.nodes()["client2"]["pid"])
    vnet("remove", LAB, "client2")
    assert not Path(f"/proc/{pid}").exists() and "client2" not in vnet.nodes()

    console(vnet)
    vnet("down", LAB)
    assert cleanup.leftovers(LAB, vnet.top / "s") == []


def console(vnet: Vnet) -> None:
    """Asserts that a machine's serial output appears on the user's terminal, and that Ctrl-] leaves it."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(sys.executable, vnet.argv("console", LAB, "server"), vnet.env)
    seen, deadline = "", time.monotonic() + 60
    while "on the line" not in seen:
        assert time.monotonic() < deadline, seen
        if "Ctrl-] leaves" in seen:
            vnet.inside("server", "sh", "-c", "echo on the line >/dev/ttyS0")
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    os.write(terminal, b"\x1d")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    os.close(terminal)
    assert "on the line" in vnet("console", LAB, "server", "--log")
