"""Tests that a node's use of the kernel's limits per user counts for a user of its own, so that nobody else
gets less.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sandboxed import ROOT, vnet

from orchestrator.kernel.uml.binaries import find_binaries

HERE = Path(__file__).parent
TAKES = HERE / "takes.py"
AGENT = ROOT / "target/release/vnet-agent"
HOLD_S = 30
FEW = {"inotify": 8, "timers": 8, "queues": 2}  # what another user needs at once

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)"),
]

LAB = """\
name: {name}
segments: {{lan: {{subnet: 10.77.0.0/24}}}}
nodes: {{a: {{segment: lan}}, b: {{segment: lan}}}}
"""


def taking(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@contextmanager
def lab(kernel: str) -> Iterator[tuple[Path, str]]:
    base, name = Path(tempfile.mkdtemp(prefix="vnet-limits-")), f"limits-{os.getpid()}"
    try:
        (base / "lab.yaml").write_text(LAB.format(name=name))
        up = vnet(base, "up", "lab.yaml", "--kernel", kernel, "--results", "out")
        assert up.returncode == 0, up.stderr
        yield base, name
    finally:
        vnet(base, "down", name)
        shutil.rmtree(base)


def in_node(base: Path, name: str, node: str, hold_s: float, most: dict[str, int]) -> subprocess.Popen[str]:
    os.environ["VNET_STATE_DIR"] = str(base / "s")
    script = ("python3", "-c", TAKES.read_text(), str(hold_s), json.dumps(most))
    return taking(sys.executable, "-m", "orchestrator.cli.main", "exec", name, node, "--", *script)


def taken(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout and process.stderr
    line = process.stdout.readline()
    assert line, process.stderr.read()
    found: dict[str, int] = json.loads(line)
    return found


@pytest.mark.parametrize("kernel", ["host", "uml"])
def test_a_node_that_takes_everything_takes_nothing_from_others(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel == "uml" and not find_binaries():
        pytest.skip("no User-Mode Linux kernel (make kernel)")
    monkeypatch.setenv("VNET_STATE_DIR", "")  # restored after the test
    with lab(kernel) as (base, name):
        hog = in_node(base, name, "a", HOLD_S, {})
        try:
            most = taken(hog)
            assert min(most.values()) > 0, most
            assert taken(in_node(base, name, "b", 0, FEW)) == FEW, "node b has less"
            if kernel == "host":
                assert taken(taking(sys.executable, str(TAKES), "0", json.dumps(FEW))) == FEW, "root has less"
            assert hog.poll() is None, "node a held it all that time"
        finally:
            hog.kill()
            hog.communicate()
