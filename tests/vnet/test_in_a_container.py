"""The pytest plugin in a container that allows what docs/pytest.md says, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.virtual.kernel import VirtualKernel

PROJECT = Path(__file__).parents[2]
KERNEL = VirtualKernel().binary
NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork")
LABS = """
import subprocess, pytest, vnet

asks = {"to": "b", "request": {"size": "100 B", "reply": "100 B", "rate": "10 /s", "rate_of": "client"}}
PAIR = (
    vnet.Topology("pair")
    .segment("lan", "10.9.0.0/24")
    .node("a", "lan", software={"asks": {"udp": asks}})
    .node("b", "lan", software={"answers": {"udp": {"listen": 9000}}})
    .link("wan", "a", "lan", both={"delay": "5 ms"})
    .phases(hold="3 s", drain="1 s")
)

MORE = ["mount -t tmpfs x /mnt", "unshare -n true", "unshare -U true", "touch /etc/x"]

@pytest.mark.parametrize("refused", MORE)
def test_nothing_more_is_allowed(refused):
    assert subprocess.run(refused.split(), capture_output=True).returncode != 0

@pytest.mark.vnet(PAIR, time="virtual")
def test_in_virtual_time(lab):
    lab.assert_proven()
    assert "5 ms" < lab.flow("a.asks").latency_p50 < "6 ms"

@pytest.mark.vnet(PAIR, kernel="uml")
def test_in_real_time(lab):
    lab.link("wan").impair(delay="50 ms")
    assert "1 received" in lab.node("a").exec("ping -c 1 10.9.0.2").stdout
"""


@pytest.mark.uml
@pytest.mark.skipif(KERNEL is None, reason="the lab's own kernel is not built (make kernel)")
def test_labs_run_in_a_container_of_a_runtime_s_defaults(tmp_path: Path) -> None:
    assert KERNEL is not None
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine grants no user namespaces")
    (tmp_path / "test_labs.py").write_text(LABS)
    container = [*NAMESPACES, "--kill-child", sys.executable, str(Path(__file__).with_name("container.py"))]
    tests = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_labs.py"]
    done = subprocess.run(
        [*container, str(tmp_path), *tests],
        env=os.environ | {"VNET_UML_KERNEL": str(KERNEL.path), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr
