"""Tests captures that are started in a running lab, and the live view of their packets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.errors import CliError
from orchestrator.cli.wireshark import place

PAIR = str(Path(__file__).resolve().parents[2] / "topologies" / "pair.yaml")
PLAIN = """name: plain
segments: {lan: {subnet: 10.20.0.0/24}}
nodes:
  left: {segment: lan, software: {ping: {command: "ping -n -i 0.2 {{ addresses.right }}", start: setup}}}
  right: {segment: lan}
run: {hold: 1 s}
"""
AS_WIRESHARK = """#!/bin/sh
echo "$@"
shift
exec tshark "$@" -l -c 2 -T fields -e ip.src
"""


@pytest.fixture
def control(vnet: CommandLine) -> Any:
    """Yields the control socket of a lab `pair` of the fake driver."""
    vnet("up", PAIR, "--kernel", "fake")
    with Control.connect(vnet.state / "pair" / "control.sock") as found:
        yield found


def test_a_capture_is_turned_on_and_off_and_both_are_events(control: Control) -> None:
    begun = control.call("capture", action="on", at="node left", by="ann")
    assert (begun["name"], begun["path"]) == ("live-node-left", "pcap/live-node-left.pcap")
    assert control.call("inspect")["captures"]["live-node-left"]["at"] == "node left"
    assert control.call("fetch", path=begun["path"])["size"] == 24  # the header of a pcap
    ended = control.call("capture", action="off", name="live-node-left", by="ann")
    assert ended["dropped_kernel"] == 0 and control.call("inspect")["captures"] == {}
    assert control.call("capture", action="on", at="node left")["name"] == "live-node-left-2", "kept"
    run_dir = Path(control.call("status")["run_dir"])
    lines = (run_dir / "raw" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines[:2]] == [
        "live: capture-on node left (by ann)", "live: capture-off node left (by ann)",
    ]  # fmt: skip


REFUSED = [
    ({"action": "on", "at": "node nobody"}, "no such node"),
    ({"action": "on", "at": "left"}, 'write "node NAME"'),
    ({"action": "on", "at": "node left", "snaplen": 3}, "give 60 to"),
    ({"action": "on", "at": "node left", "filter": "-w /etc/passwd"}, "a pcap filter expression"),
    ({"action": "on", "at": "node left", "filter": "tcp prot 80"}, "tcpdump refuses it"),
    ({"action": "on", "at": "node left", "name": "right"}, "is one already"),
    ({"action": "on", "at": "node left", "name": "../x"}, "use a-z"),
    ({"action": "off", "name": "right"}, "no live capture of this name"),
    ({"action": "again"}, "not one of on, off"),
]


def test_a_capture_that_is_none_is_refused(control: Control) -> None:
    for wanted, said in REFUSED:
        with pytest.raises(ControlError, match=said):
            control.call("capture", **wanted)


def test_adding_removing_and_setting_are_events_too(vnet: CommandLine) -> None:
    vnet("up", PAIR, "--kernel", "fake")
    clone = json.loads(vnet("add", "pair", "left", "--idle", "--json").stdout)["added"][0]["node"]
    vnet("set", "pair", "left", "--mtu", "1400")
    with Control.connect(vnet.state / "pair" / "control.sock") as control:
        begun = control.call("capture", action="on", at=f"node {clone}")
        vnet("remove", "pair", clone)
        assert control.call("inspect")["captures"] == {}, begun
        run_dir = Path(control.call("status")["run_dir"])
    lines = [json.loads(line) for line in (run_dir / "raw" / "events.jsonl").read_text().splitlines()]
    assert [line["action"] for line in lines] == ["add", "set", "capture-on", "remove"]


def test_a_point_by_its_name_alone() -> None:
    found = {"nodes": {"a": {}, "b": {}}, "links": {"wan": {}, "b": {}}, "segments": [{"name": "lan"}]}
    assert [place(found, point) for point in ("a", "wan", "lan", "link b")] == [
        "node a", "link wan", "segment lan", "link b",
    ]  # fmt: skip
    for point, said in (
        ("b", "may be node b or link b"),
        ("c", "no node, link, segment"),
        ("node lan", '"node lan": no node'),
    ):
        with pytest.raises(CliError) as error:
            place(found, point)
        assert said in error.value.text


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("tshark"), reason="needs root, and tshark (apt-get install tshark)"
)
def test_tshark_reads_packets_as_they_pass(vnet: CommandLine) -> None:
    (vnet.cwd / "plain.yaml").write_text(PLAIN)
    vnet("up", "plain.yaml", "--kernel", "host", "--lab", "wire-shark")
    source = vnet.start("wireshark", "wire-shark", "right", "--filter", "icmp", "--write", "-")
    read = subprocess.run(
        ["tshark", "-r", "-", "-c", "4", "-T", "fields", "-e", "ip.src"],
        stdin=source.stdout, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert source.stdout is not None and source.stderr is not None
    source.stdout.close()
    assert sorted(set(read.stdout.split())) == ["10.20.0.1", "10.20.0.2"] and len(read.stdout.split()) == 4
    assert source.wait(100) == 0 and "capturing at node right" in source.stderr.read()

    # A script takes Wireshark's place: its tshark and dumpcap open the pipe as an interface.
    (vnet.cwd / "wireshark").write_text(AS_WIRESHARK)
    (vnet.cwd / "wireshark").chmod(0o755)
    path = f"{vnet.cwd}:{os.environ['PATH']}"
    there = CommandLine(vnet.cwd, vnet.state, {"PATH": path})
    shown = there("wireshark", "wire-shark", "node left", "--filter", "icmp").stdout.split()
    assert (shown[:3], sorted(shown[3:])) == (["-k", "-i", "-"], ["10.20.0.1", "10.20.0.2"])
    said = vnet("wireshark", "wire-shark", "right", "--filter", "no such thing", "--write", "-", status=1)
    assert "can't parse filter expression" in said.stderr, "and the lab goes on:"
    with Control.connect(vnet.state / "wire-shark" / "control.sock") as control:
        assert control.call("inspect")["captures"] == {}
