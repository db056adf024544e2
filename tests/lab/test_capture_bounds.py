"""Tests captures that end at a limit, are sent elsewhere, or are compressed while they are written: written
packets are whole and reduced, missing ones are reported, and impossible settings are refused.
"""

from __future__ import annotations

import json
import os
import shlex
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
from capture.tcpdump import matching
from contract import codec
from contract.plan import Capture, Plan
from orchestrator.kernel import host
from orchestrator.kernel.uml import needs as uml_needs
from orchestrator.lab.capture_pipe import sending
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


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root")
@pytest.mark.skipif(not (PROJECT / "target/release/vnet-agent").exists(), reason="the agent is not built")
def test_a_capture_is_sent_as_it_is_written_and_a_sink_that_refuses_ends_the_run(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f'echo "$@" >> {tmp_path}/asked\n'
        f'[ -e {tmp_path}/refuse ] && {{ echo "ada@lab7: Permission denied (publickey)." >&2; exit 255; }}\n'
        'exec sh -c "$last"\n'
    )
    ssh.chmod(0o755)
    far = f"{{at: segment lan, to: ssh://ada@lab7:2222{tmp_path}/sink}}"
    text = FILE[: FILE.index("captures:")] + f"captures: {{far: {far}}}\nrun: {{hold: 2 s}}\n"
    (tmp_path / "far.yaml").write_text(text)
    env = {**os.environ, "VNET_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(PROJECT)}
    env["VNET_SSH"] = str(ssh)
    command = [sys.executable, "-m", "orchestrator.cli.main", "run", "far.yaml", "--kernel", "host"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    (here,) = (tmp_path / "results" / LAB).iterdir()
    assert list((here / "pcap").iterdir()) == []
    (file,) = (tmp_path / "sink").iterdir()
    assert file.name == f"{LAB}.{here.name}.far.pcap"
    assert file.stat().st_mode & 0o077 == 0
    told = json.loads((here / "manifest.json").read_text())
    assert matching(file, "ip or arp or ip6") == told["captures"]["far"]["packets"] > 0
    assert "reduce-absent" not in {one["code"] for one in told["warnings"]}
    asked = (tmp_path / "asked").read_text()
    assert "BatchMode=yes" in asked and "-l ada -p 2222 -- lab7 umask 077" in asked
    (tmp_path / "refuse").touch()
    refused = run()
    assert refused.returncode == 1
    assert "ended with status 255: ada@lab7: Permission denied (publickey)." in refused.stderr
    assert [one.name for one in (tmp_path / "sink").iterdir()] == [file.name]


@pytest.mark.parametrize(
    "to",
    [
        "/tmp/x",
        "ssh://lab7",
        "ssh://-oProxyCommand=x/tmp",
        "ssh://lab7/a b",
        "http://lab7/tmp",
        "ssh://l;x/tmp",
    ],
)
def test_sinks_that_are_none_are_refused(to: str) -> None:
    with pytest.raises(TopologyError) as refused:
        plan(FILE.replace("compress: zstd, keep: false", f'to: "{to}"'))
    assert [p.path for p in refused.value.problems] == ["captures.brief.to"]


def test_bounds_of_the_run_directory_are_refused_for_what_goes_elsewhere() -> None:
    with pytest.raises(TopologyError) as refused:
        plan(FILE.replace("keep: false", "keep: false, limit: 1 MB, to: ssh://lab7/tmp"))
    assert {p.path for p in refused.value.problems} == {"captures.brief.limit", "captures.brief.keep"}
    sent = plan(FILE.replace("keep: false", 'to: "ssh://lab7/it\'s"'))
    argv = sending(next(one for one in sent.captures if one.to), Path("results/l/r/pcap/brief.pcap.zst"))
    assert shlex.split(argv[-1])[-1] == "/it's/l.r.brief.pcap.zst"
    assert [one.what for one in uml_needs.missing_way_out(sent)] == ["a way out of the guest"]
    assert uml_needs.missing_way_out(plan()) == []
    assert "brief" not in {p.scope for p in sent.predictions if p.name == "capture size"}


def test_a_lab_on_the_machine_gets_the_variables_of_disks_and_ssh() -> None:
    base = {"VNET_DISK_DIR": "/srv/disks", "VNET_SSH": "ssh -F f", "SSH_AUTH_SOCK": "/a", "VNET_OTHER": "x"}
    assert host.handed(base) == {name: base[name] for name in ("VNET_DISK_DIR", "VNET_SSH", "SSH_AUTH_SOCK")}
