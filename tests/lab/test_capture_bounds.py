"""Tests captures that end at a limit and that are compressed as they are written: what was written is whole
and reduced, what is missing is said, and where it cannot be done is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from capture.errors import CaptureError
from capture.packed import packed, plain
from capture.packets import pcap_of
from contract import codec
from contract.plan import Capture, Plan
from orchestrator.plan.build import make_plan
from orchestrator.run import filters
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

PROJECT = Path(__file__).resolve().parents[2]
LAB = f"bounds-{os.getpid()}"
FILE = f"""\
name: {LAB}
segments: {{lan: {{subnet: 10.9.0.0/24}}}}
nodes:
  a:
    segment: lan
    address: 10.9.0.1
    software: {{talk: {{command: "ping -i 0.002 -s 1000 10.9.0.2"}}}}
  b: {{segment: lan, address: 10.9.0.2}}
captures:
  whole: {{at: segment lan, compress: zstd}}
  brief: {{at: segment lan, compress: zstd, keep: false}}
  short: {{at: segment lan, limit: 100 kB}}
run: {{hold: 3 s}}
"""
ZSTD = pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")


def plan(text: str = FILE) -> Plan:
    return make_plan(parse("bounds.yaml", text.encode()), None, None)


def zstd(content: bytes, target: Path) -> None:
    target.write_bytes(subprocess.run(["zstd", "-q", "-c"], input=content, stdout=-1, check=True).stdout)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root")
@pytest.mark.skipif(not (PROJECT / "target/release/vnet-agent").exists(), reason="the agent is not built")
@ZSTD
def test_a_run_with_a_limit_and_compressed_captures(tmp_path: Path) -> None:
    (tmp_path / "bounds.yaml").write_text(FILE)
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "orchestrator.cli.main", "run", "bounds.yaml", "--kernel", "host"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "results" / LAB).iterdir()
    assert {p.name for p in (run / "pcap").iterdir()} == {"whole.pcap.zst", "short.pcap"}
    told = json.loads((run / "manifest.json").read_text())
    rows = {
        name: pl.read_parquet(run / f"packets/{name}.parquet").height for name in ("whole", "brief", "short")
    }
    assert {name: told["captures"][name]["packets"] for name in rows} == rows
    assert rows["whole"] > rows["short"] > 0
    assert (run / "pcap/short.pcap").stat().st_size >= 100_000
    (warning,) = (one for one in told["warnings"] if one["code"] == "capture")
    assert warning["suspect"]
    assert "captures.short: ended at its limit" in warning["text"]
    with pytest.raises(CaptureError, match=r"`zstd -d .*whole\.pcap\.zst` unpacks it"):
        pcap_of(run, "whole")
    checks = {one["name"]: one["verdict"] for one in told["checks"]}
    assert "fails" not in checks.values(), checks
    again = subprocess.run(
        [*command[:3], "report", str(run)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 0, again.stderr
    assert (run / "pcap/whole.pcap.zst").exists() and not (run / "pcap/whole.pcap").exists()


@ZSTD
def test_a_compressed_capture_that_was_cut_gives_what_comes_before(tmp_path: Path) -> None:
    pcap, content = tmp_path / "a.pcap", os.urandom(1 << 20)
    zstd(content, packed(pcap))
    with plain(pcap) as (file, damage):
        assert (file.read_bytes(), damage) == (content, "")
    assert not pcap.exists()
    whole = packed(pcap).read_bytes()
    packed(pcap).write_bytes(whole[: len(whole) // 2])
    with plain(pcap) as (file, damage):
        assert 0 < len(file.read_bytes()) < len(content)
        assert content.startswith(file.read_bytes())
        assert damage
    assert [path.name for path in tmp_path.iterdir()] == ["a.pcap.zst"]


def test_the_limit_bounds_the_prediction_and_is_shown() -> None:
    bounded = plan()
    sizes = {p.scope: p.value for p in bounded.predictions if p.name == "capture size"}
    assert sizes["short"] <= 100_000
    by_name = {one.name: one for one in bounded.captures}
    assert (by_name["short"].limit_bytes, by_name["whole"].compress) == (100_000, "zstd")


def test_plans_without_them_are_written_as_before() -> None:
    capture = Capture("a", "node a", "ns", "eth0", 1600, "", True)
    assert {"limit_bytes", "compress"}.isdisjoint(codec.plain(capture))
    bounded = replace(capture, limit_bytes=7, compress="zstd")
    assert codec.build(Capture, codec.plain(bounded)) == bounded
    assert codec.build(Capture, codec.plain(capture)) == capture


@pytest.mark.parametrize("value", ["0 B", "-1 kB", "much", "12"])
def test_a_limit_that_is_none_is_refused_with_its_line(value: str) -> None:
    with pytest.raises(TopologyError) as refused:
        plan(FILE.replace("limit: 100 kB", f"limit: {value}"))
    (problem,) = refused.value.problems
    assert (problem.path, problem.line) == ("captures.short.limit", 12)


def test_compression_is_refused_where_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    one = plan()
    paths = ["captures.whole.compress", "captures.brief.compress"]
    assert [p.path for p in filters.packing(one, "virtual")] == paths
    monkeypatch.setenv("PATH", "/nowhere")
    assert [p.remedy for p in filters.packing(one, "real")] == ["apt-get install zstd"] * 2
    assert filters.packing(plan(FILE.replace("compress: zstd", "snaplen: 100")), "virtual") == []
