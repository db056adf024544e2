"""Tests synchrophasors in virtual time: every frame arrives, and tshark decodes each correctly."""

from __future__ import annotations

import json
import subprocess
from collections import Counter

import polars as pl
from virtual_place import PROJECT, Place

from reports.metrics.bounds import bounded
from reports.rundir import read_run

SPOIL = """\
import socket, struct, sys
frame = struct.pack(">HHHIIHH", 0xAA41, 18, 1, 0, 0, 2, 0xBEEF)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(7):
    datagrams.sendto(frame, (sys.argv[1], 4713))
with socket.create_connection((sys.argv[2], 4712)) as stream:
    stream.sendall(5 * frame)
    stream.shutdown(socket.SHUT_WR)
    stream.recv(1)
"""
COMMAND = json.dumps(["python3", "-c", SPOIL, "{{ addresses.bay }}", "{{ addresses.feeder }}"])
SPOILED = f"""\
name: spoiled
segments: {{lan: {{subnet: 10.1.0.0/24}}, far: {{subnet: 10.1.0.0/24}}}}
nodes:
  bay:
    segment: lan
    software: {{pmu: {{synchrophasor: {{listen: 4713, transport: udp, data: {{rate: 50 /s}}}}}}}}
  feeder:
    segment: lan
    software: {{pmu: {{synchrophasor: {{listen: 4712, idcode: 3, data: {{rate: 50 /s}}}}}}}}
  centre:
    segment: far
    software: {{one: {{synchrophasor: {{to: bay}}}}, other: {{synchrophasor: {{to: feeder}}}}}}
  foe: {{segment: lan, software: {{spoil: {{start: hold, at_end: exited, command: {COMMAND}}}}}}}
links:
  wan:
    between: [lan, far]
    both: {{rate: 10 Mbit/s, delay: 2 ms, queue: {{prio: {{first: {{port: 4713}}, rest: {{}}}}}}}}
run: {{connect_interval: 50 ms, hold: 2 s, drain: 1 s}}
"""


def test_every_frame_comes_and_is_what_the_standard_says(place: Place) -> None:
    run = place.run(
        "-p", "stations=2", "-p", "hold=12s", file=str(PROJECT / "topologies" / "synchrophasor.yaml")
    )
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(messages["outcome"]) == {"sent"} and messages["received_ns"].null_count() == 0
    of = {name[0]: group for name, group in messages.group_by("class")}
    assert of["tcp"]["bytes"].unique().to_list() == [86] and of["udp"]["bytes"].unique().to_list() == [54]
    assert of["tcp"].height < of["udp"].height, "they measure less often from the tenth second on"

    packets = pl.read_parquet(run.run_dir / "packets" / "control.parquet")
    kinds = Counter(packets["app_types"].drop_nulls().explode().to_list())
    assert kinds["CFG-2"] == kinds["HEADER"] == 4 and kinds["COMMAND"] == 4 * 4
    assert kinds["DATA"] == messages.height and not kinds.keys() - {"CFG-2", "HEADER", "COMMAND", "DATA"}
    assert dissected(run.run_dir / "pcap" / "control.pcap") == kinds


def test_commands_of_a_wrong_checksum_are_counted_and_data_keep_their_bounds(place: Place) -> None:
    (place.cwd / "spoiled.yaml").write_text(SPOILED)
    ran = place.run("--lab", "spoiled", file="spoiled.yaml")
    assert (ran.manifest["foreign"], ran.manifest["warnings"]) == (12, [])
    messages = pl.read_parquet(ran.run_dir / "messages.parquet")
    assert messages.height > 100 and messages["received_ns"].null_count() == 0
    held = {one.traffic_class: one for one in bounded(read_run(ran.run_dir)) if one.worst_ns is not None}
    assert held.keys() == {"bay.pmu"} and held["bay.pmu"].count > 50 and not held["bay.pmu"].over


def dissected(pcap: object) -> Counter[str]:
    """Returns the number of frames of each kind that tshark finds; asserts that all checksums are right."""
    names = {"0": "DATA", "1": "HEADER", "3": "CFG-2", "4": "COMMAND"}
    argv = ["tshark", "-n", "-r", str(pcap), "-Y", "synphasor && !icmp", "-T", "fields"]
    argv += [part for field in ("frtype", "checksum.status") for part in ("-e", f"synphasor.{field}")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for line in said.splitlines():
        kinds, states = line.split("\t")
        assert set(states.split(",")) == {"1"}, line
        found.update(names[str(int(kind, 0))] for kind in kinds.split(","))
    return found
