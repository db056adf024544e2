"""Tests that each deliberate disturbance of a real lab marks its run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.lab import cgroup, namespaces

AGENT = Path(__file__).resolve().parents[2] / "target/release/vnet-agent"
LAB = f"disturbed-{os.getpid()}"  # so that two runs of this suite do not meet
FILE = f"""\
name: {LAB}
segments: {{lan: {{subnet: 10.94.0.0/24}}}}
nodes:
  b: {{segment: lan, software: {{sink: {{udp: {{listen: 9000}}}}}}}}
  p:
    segment: lan
    software: {{tx: {{udp: {{to: [b], push: {{size: 100 B, rate: 50 /s, rate_of: client}}}}}}}}
run: {{connect_interval: 100 ms, hold: 4 s, drain: 1 s}}
"""

pytestmark = pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)")
Disturb = Callable[[CommandLine], None]


def processes(line: CommandLine, role: str) -> list[int]:
    about = json.loads((line.state / LAB / "lab.json").read_text())
    return [int(p["pid"]) for p in about["processes"] if p["role"] == role]


def stopped(pids: list[int], seconds: float) -> None:
    """Stops the processes (SIGSTOP), waits `seconds`, and continues them."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def in_namespace(node: str) -> list[int]:
    """Returns the pids of a node's agent, found by the node's network namespace."""
    inodes = namespaces.inodes([n for n in namespaces.of(LAB) if n.name.endswith(f".{node}")])
    found = []
    for entry in Path("/proc").iterdir():
        status = namespaces.stat_of(entry / "ns" / "net") if entry.name.isdigit() else None
        if status is not None and (status.st_dev, status.st_ino) in inodes:
            found.append(int(entry.name))
    assert found, f"node {node} has no process"
    return found


def run(line: CommandLine, kernel: str, group: Path, disturb: Disturb) -> dict[str, Any]:
    """Returns the manifest of a run in a control group that is disturbed in its hold."""
    (line.cwd / "lab.yaml").write_text(FILE)
    process = line.start("run", "lab.yaml", "--kernel", kernel, "--json")
    (group / "cgroup.procs").write_text(str(process.pid))  # moves the process, and so all that it starts
    progress = line.cwd / "results" / LAB
    deadline = time.monotonic() + 90
    while '"hold"' not in "".join(f.read_text() for f in progress.glob("*/raw/progress.jsonl")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)  # the test is about the hold; the deadline is above
    time.sleep(0.5)
    disturb(line)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    answer = json.loads(out)
    found: dict[str, Any] = json.loads((line.cwd / answer["run_dir"] / "manifest.json").read_text())
    return found


@pytest.fixture
def quota() -> Iterator[Path]:
    """Yields a control group like that of a container with a CPU limit."""
    layout = cgroup.this_machine()
    if "cpu" not in layout.mounts:
        pytest.skip("no control group has a CPU controller here")
    group = layout.mounts["cpu"] / f"vnet-test-{os.getpid()}"
    group.mkdir()
    yield group
    group.rmdir()


def throttle(group: Path) -> None:
    """Limits the group for one second of the hold to a tenth of a core, which another program of the group
    also uses; a permanent limit would make the lab's start and end slow.
    """
    v2 = (group / "cpu.max").exists()
    quota, free = (group / "cpu.max", "max") if v2 else (group / "cpu.cfs_quota_us", "-1")
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        (group / "cgroup.procs").write_text(str(busy.pid))
        quota.write_text("10000")
        time.sleep(1)
        quota.write_text(free)
        busy.kill()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root")
def test_a_stopped_sender_foreign_queues_and_a_quota_mark_a_run(vnet: CommandLine, quota: Path) -> None:
    def disturb(_: CommandLine) -> None:
        for node, queue in (("p", "tbf rate 10mbit burst 5kb latency 9ms"), ("b", "pfifo limit 7")):
            words = f"tc -n vnet-{LAB}.{node} qdisc add dev eth0 root {queue}"  # root of the node may run it
            subprocess.run(words.split(), check=True)
        stopped(in_namespace("p"), 1.2)
        throttle(quota)

    found = run(vnet, "host", quota, disturb)
    assert found["state"] == "complete" and found["suspect"]
    said = {w["code"]: w["text"] for w in found["warnings"] if w["suspect"]}
    assert {"trust-sender", "trust-stopped", "changed", "trust-throttling"} <= said.keys(), found["warnings"]
    assert f"vnet-{LAB}.b.eth0: requested nothing, read back pfifo" in said["changed"]
    assert f"vnet-{LAB}.p.eth0: requested nothing, read back tbf" in said["changed"]


@pytest.mark.uml
@pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel")
def test_a_stopped_kernel_and_a_quota_mark_a_run(vnet: CommandLine, quota: Path) -> None:
    def disturb(line: CommandLine) -> None:
        stopped(processes(line, "uml"), 0.7)
        throttle(quota)

    found = run(vnet, "uml", quota, disturb)
    assert found["state"] == "complete" and found["suspect"]
    said = {w["code"]: w["text"] for w in found["warnings"] if w["suspect"]}
    assert {"trust-stalls", "trust-throttling"} <= said.keys(), found["warnings"]
