"""Tests RFC 2544 trials to and from machines of 96 MiB: their packet rings fit, and each frame is accounted
for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from lab_running import needs_vm

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
TRIALS = (
    "settle: 500 ms, trial: 500 ms, burst: 50 ms, burst_trials: 1, latency_trials: 1, latency_trial: 500 ms"
)
LAB = f"""\
name: vmframes-{os.getpid()}
segments: {{wire: {{subnet: 10.44.0.0/24}}}}
nodes:
  tester:
    segment: wire
    kind: vm
    boot_within: 240 s
    software: {{out: {{frames: {{to: sink, sizes: 1518, line_rate: 20 Mbit/s, {TRIALS}}}}}}}
  sink: {{segment: wire, kind: vm, boot_within: 240 s}}
  light:
    segment: wire
    software: {{in: {{frames: {{to: sink, sizes: 64, line_rate: 2 Mbit/s, {TRIALS}}}}}}}
run: {{ramp: 0 s, hold: 1 s, drain: 1 s}}
"""


@pytest.fixture(scope="module")
def run_dir() -> Iterator[Path]:
    """Yields the directory of one run with both streams."""
    top = Path(tempfile.mkdtemp(prefix="vf"))  # a short path, because QEMU's sockets are deep below it
    top.chmod(0o711)  # lets QEMU's account enter the directory
    (top / "vmframes.yaml").write_text(LAB)
    argv = [sys.executable, "-m", "orchestrator.cli.main", "run", str(top / "vmframes.yaml")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "VNET_STATE_DIR": str(top / "s")}
    argv += ["--kernel", "host", "--results", str(top / "out")]
    done = subprocess.run(argv, cwd=top, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = (top / "out").glob("*/*")
    yield found
    shutil.rmtree(top)


@pytest.mark.parametrize("stream", ["tester.out", "light.in"])
def test_trials_with_machines_find_and_account(run_dir: Path, stream: str) -> None:
    trials = pl.read_parquet(run_dir / "trials.parquet").filter(pl.col("stream") == stream)
    findings = pl.read_parquet(run_dir / "findings.parquet").filter(pl.col("stream") == stream)
    found = dict(zip(findings["test"], findings["value"], strict=True))
    assert found["throughput"] > 0 and found["back-to-back"] > 0, (found, trials)
    assert set(trials["test"]) >= {"throughput", "latency", "frame-loss", "back-to-back"}
    counted = trials["received"] + trials["lost"] + trials["ring_dropped"]
    assert (counted == trials["sent"]).all(), trials
    assert trials["corrupted"].sum() == 0 and (trials["sent"] > 0).all()
    passed = trials.filter(pl.col("verdict") == "passed")
    assert not passed.is_empty() and (passed["received"] == passed["sent"]).all()


def test_latency_between_two_kernels_is_not_shown(run_dir: Path) -> None:
    manifest = json.loads((run_dir / "manifest.json").read_text())
    assert manifest["state"] == "complete" and set(manifest["starts"]["nodes"]) == {"tester", "sink"}
    assert "latency is not shown" in (run_dir / "report" / "index.html").read_text()
