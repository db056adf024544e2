"""Compares the proof with two independent programs: ping for a round trip, iperf3 for a rate."""

from __future__ import annotations

import json
import re
import shutil
import statistics

import pytest
from virtual_place import Place

LINK = """\
name: agreed
segments: {left: {subnet: 10.51.0.0/24}, right: {subnet: 10.51.0.0/24}}
nodes:
  near:
    segment: left
    software:
      ping: {command: "ping -n -c 200 -i 0.02 {{ addresses.far }}"}
      bulk: {command: "sleep 6; exec iperf3 -c {{ addresses.far }} --time 10 --json --get-server-output"}
  far:
    segment: right
    software: {server: {command: "exec iperf3 --server --json", role: server, ready: {tcp: 5201}}}
links:
  wan: {between: [left, right], both: {delay: 15 ms, rate: 20 Mbit/s}}
run: {hold: 22 s}
"""
WIRE_BYTES, SEGMENT_BYTES = 1514, 1448  # lengths of a full segment with time stamps


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 (make setup installs it)")
def test_ping_and_iperf3_agree_with_the_proof(place: Place) -> None:
    (place.cwd / "agreed.yaml").write_text(LINK)
    ran = place.run(file="agreed.yaml")
    lines = json.loads((ran.run_dir / "proof.json").read_text())
    proof = {(one["direction"], one["quantity"]): one for one in lines}
    assert {one["verdict"] for one in lines} == {"holds"}

    said = (ran.run_dir / "raw/logs/near.ping.log").read_text()
    frame_ns = 98 * 8 * 10**9 / 20e6  # an echo request's transmission time
    # The line's first value (the least) does not contain ARP's time; the mean contains it.
    found = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/", said)
    assert found is not None, said
    ways = sum(proof[way, "delay"]["measured"] for way in ("forward", "reverse"))
    sending = sum(
        proof[way, "delay"]["expected"] - proof[way, "delay"]["requested"] for way in ("forward", "reverse")
    )
    tolerance = sum(proof[way, "delay"]["tolerance"] for way in ("forward", "reverse"))
    assert float(found[1]) * 1e6 == pytest.approx(ways - sending + 2 * frame_ns, abs=tolerance)

    said = (ran.run_dir / "raw/logs/near.bulk.log").read_text()
    seconds = json.loads(said)["server_output_json"]["intervals"][2:9]  # intervals after slow start
    goodput = statistics.median(second["sum"]["bits_per_second"] for second in seconds)
    wire = goodput * WIRE_BYTES / SEGMENT_BYTES
    assert wire == pytest.approx(proof["forward", "rate"]["measured"], rel=0.01)
