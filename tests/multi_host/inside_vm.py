"""Tests light nodes and virtual machines over two hosts; test_multi_host.py runs it, pytest does not collect
it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from on_hosts import DELAY_MS, begun, lines, manifest_of, rack, run_of, vnet
from rack import Rack

__all__ = ["rack", "vnet"]  # fixtures
SENDER = "{sender: {mqtt: {broker: broker, publish: {topic: readings, qos: 1, rate: 5 /s}}}}"
MIXED = f"""\
name: pair
hosts:
%s
parameters: {{hold: {{type: duration, default: 10 s}}}}
segments: {{lan: {{subnet: 10.30.0.0/16}}}}
nodes:
  broker: {{segment: lan, host: h1, software: {{mosquitto: {{broker: mosquitto}}}}}}
  reader:
    segment: lan
    host: h2
    software: {{all: {{mqtt: {{broker: broker, subscribe: [{{topic: "#", qos: 1}}]}}}}}}
  near: {{segment: lan, host: h1, kind: vm, boot_within: 300 s, software: {SENDER}}}
  far: {{segment: lan, host: h2, kind: vm, boot_within: 300 s, software: {SENDER}}}
captures: {{guest: {{at: node far}}}}
run: {{connect_interval: 500 ms, hold: "${{hold}}", drain: 30 s}}
"""


@pytest.fixture
def mixed(rack: Rack, vnet: CommandLine) -> Path:
    """Writes a topology of two light nodes and two machines, one of each on each host; all messages go to the
    reader's host.
    """
    file = vnet.cwd / "mixed.yaml"
    file.write_text(MIXED % "\n".join(f"  {h.name}: {{machine: {h.url}}}" for h in rack.hosts[:2]))
    return file


def test_light_nodes_and_virtual_machines_over_two_hosts(vnet: CommandLine, mixed: Path) -> None:
    said = vnet("run", str(mixed), "--raw").stderr
    run, found = run_of(vnet), manifest_of(vnet)
    assert found["state"] == "complete", said
    assert {name: host["nodes"] for name, host in found["hosts"].items()} == {"h1": 2, "h2": 2}
    sent, received = lines(run, "S"), lines(run, "R")
    assert len(sent) >= 80 and {line[-1] for line in sent} == {"settled"}
    assert sorted(line[1:3] for line in sent) == sorted(line[1:3] for line in received)
    assert set(found["clocks"]) == {"h1", "h2", "near", "far"}
    seen = subprocess.run(
        ["tcpdump", "-nr", run / "pcap" / "guest.pcap", "tcp port 1883"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert seen.stdout.count("\n") > 50
    print(said, found["clocks"], found["underlay"])


def test_a_host_dies_with_its_virtual_machine(rack: Rack, vnet: CommandLine, mixed: Path) -> None:
    vnet.more["VNET_SILENCE_S"] = "10"
    running = begun(vnet, mixed)
    first, second = rack.hosts[:2]
    second.kill()
    try:
        _, said = running.communicate(timeout=600)
        assert running.returncode == 1 and "host h2 (2 nodes): not a word for 10 s" in said, said
        assert lines(run_of(vnet), "S"), "what the other host's machine sent"
        assert first.left() == [] and vnet.labs() == ["pair"]
    finally:
        second.start(DELAY_MS)
    vnet("down", "pair")
