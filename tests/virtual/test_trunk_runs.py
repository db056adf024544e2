"""Tests trunks in virtual time: segments share a link's delay, stay apart, and come back together."""

from __future__ import annotations

import json
import shutil
import subprocess

import polars as pl
import pytest
from virtual_place import Place

FILE = """\
name: trunk
segments:
  one-a: {subnet: 10.1.0.0/24}
  one-b: {subnet: 10.1.0.0/24}
  two-a: {subnet: 10.2.0.0/24}
  two-b: {subnet: 10.2.0.0/24}
nodes:
  n1a: {segment: one-a, software: {ask: {udp: {to: n1b, request: {size: 100 B, reply: 100 B, rate: 10 /s}}}}}
  n1b: {segment: one-b, software: {in: {udp: {listen: 9000}}}}
  n2a:
    segment: two-a
    software:
      ask: {udp: {to: n2b, request: {size: 100 B, reply: 100 B, rate: 10 /s}}}
      other: {command: "ip route add 10.1.0.0/24 dev eth0; ping -c 2 -W 1 10.1.0.2; true", start: hold, at_end: exited}
  n2b: {segment: two-b, software: {in: {udp: {listen: 9000}}}}
links:
  wire: {between: [one-a, one-b], trunk: {20: [two-a, two-b]}, both: {delay: 5 ms, rate: 10 Mbit/s}}
captures:
  wire: {at: link wire}
timeline:
  - {at: hold + 3 s, link-down: wire, for: 1 s}
run: {hold: 8 s}
"""  # noqa: E501


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_a_trunk_carries_two_segments_apart(place: Place) -> None:
    (place.cwd / "trunk.yaml").write_text(FILE)
    run = place.run("--json", file="trunk.yaml")
    asked = pl.read_parquet(run.run_dir / "messages.parquet").with_columns(
        ((pl.col("scheduled_ns") - pl.col("scheduled_ns").min()) / 1e9).alias("s")
    )
    for sender in ("n1a", "n2a"):
        own = asked.filter(pl.col("sender").str.starts_with(sender))
        before, cut, after = (
            own.filter(pl.col("s").is_between(*times))["round_trip_ns"]
            for times in ((0, 2.2), (2.6, 3.3), (5, 9))
        )
        assert before.len() > 15 and before.null_count() == 0
        median = before.median()
        assert isinstance(median, float) and 10_000_000 < median < 11_000_000
        assert cut.len() > 4 and cut.null_count() == cut.len()
        assert after.len() > 15 and after.null_count() == 0
    log = (run.run_dir / "raw/logs/n2a.other.log").read_text()
    assert "0 received" in log, "frames of one pair do not reach the other"
    fields = ["-T", "fields", "-e", "ip.dst", "-e", "vlan.id", "-Y", "udp.dstport == 9000"]
    done = subprocess.run(
        ["tshark", "-r", str(run.run_dir / "pcap" / "wire.pcap"), *fields],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = {tuple(line.split("\t")) for line in done.stdout.splitlines()}
    assert seen == {("10.1.0.2", ""), ("10.2.0.2", "20")}, "a foreign program sees the tags"
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    assert [one["code"] for one in manifest["warnings"] if one.get("suspect", True)] in (
        [],
        ["network-changed"],
    ), manifest
