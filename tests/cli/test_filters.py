"""Tests that capture filters which tcpdump refuses are reported with their line before a lab is made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_line import CommandLine

from capture.tcpdump import fault
from orchestrator.plan.build import make_plan
from orchestrator.run.filters import planned
from orchestrator.topology import load

FILE = """\
name: filtered
segments: {l: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: l, software: {q: {udp: {to: b, push: {rate: 10 /s, size: 100 B}}}}}
  b: {segment: l, software: {q: {udp: {listen: 7000}}}}
parameters: {wanted: {type: text, default: udp}}
captures:
  good: {at: segment l, filter: "tcp port 80 or (vlan and udp)"}
  bad: {at: segment l, filter: "tcp prot 80"}
  worse: {at: node a, filter: "${wanted}"}
run: {hold: 3 s, drain: 1 s}
"""
BAD = 'lab.yaml:9: captures.bad.filter: "tcp prot 80": tcpdump refuses the filter: '

pytestmark = pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lab.yaml").write_text(FILE)
    return Path("lab.yaml")


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_every_wrong_filter_is_refused_with_its_line(file: Path, vnet: CommandLine, command: str) -> None:
    text = vnet(command, str(file), "-p", "wanted=port", status=3).stderr
    assert BAD in text and "syntax error" in text
    assert 'lab.yaml:10: captures.worse.filter: "port"' in text and "captures.good" not in text


def test_a_filter_is_told_together_with_other_mistakes(file: Path, vnet: CommandLine) -> None:
    file.write_text(FILE.replace("100 B", "100 X"))
    text = vnet("check", str(file), status=3).stderr
    assert BAD in text and "lab.yaml:4: nodes.a" in text and "2 mistakes" in text


def test_a_plan_without_its_file_names_the_capture(file: Path) -> None:
    plan = make_plan(load(file))
    file.unlink()
    (problem,) = planned(plan)
    assert (problem.line, problem.path) == (0, "captures.bad.filter")


@pytest.mark.parametrize("wanted", ["", "icmp", "ether proto 0x88b8", "vlan 5 and ip6", "portrange 20-30"])
def test_what_tcpdump_takes_has_no_fault(wanted: str) -> None:
    assert fault(wanted) is None


@pytest.mark.parametrize(
    "wanted", ["tcp prot 80", "port", "-w /tmp/x", "ether[0] == 1 and ether[0] == 2", "\0"]
)
def test_what_tcpdump_refuses_has_one(wanted: str) -> None:
    assert fault(wanted)


def test_without_tcpdump_nobody_can_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert fault("tcp prot 80", program="no-such-tcpdump") is None
    refuses = tmp_path / "refuses-all"
    refuses.write_text("#!/bin/sh\necho cannot start >&2; exit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert fault("tcp prot 80", program="refuses-all") is None
