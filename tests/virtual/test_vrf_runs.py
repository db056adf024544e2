"""Tests routing tables of their own (VRF) in virtual time: both families, isolation, and a cut."""

from __future__ import annotations

import json

import polars as pl
from virtual_place import Place

FILE = """\
name: vrf
segments:
  red-a: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  blue-a: {subnet: [10.2.0.0/24, "fd00:2::/64"]}
  red-b: {subnet: [10.3.0.0/24, "fd00:3::/64"]}
  blue-b: {subnet: [10.4.0.0/24, "fd00:4::/64"]}
nodes:
  one: {segment: [red-a, blue-a], forward: true, vrf: {red: [red-a, red-core], blue: [blue-a, blue-core]}}
  two: {segment: [red-b, blue-b], forward: true, vrf: {red: [red-b, red-core], blue: [blue-b, blue-core]}}
  red1:
    segment: red-a
    software:
      ask: {udp: {to: red2, request: {size: 100 B, reply: 100 B, rate: 10 /s}}}
      ask6: {udp: {to: red2, family: ipv6, request: {size: 100 B, reply: 100 B, rate: 10 /s}}}
  red2: {segment: red-b, software: {in: {udp: {listen: 9000}}}}
  blue1:
    segment: blue-a
    software:
      other: {command: "ping -c 3 -W 1 10.3.0.2; ping -c 3 -W 1 fd00:3::2; ping -c 1 -W 1 10.1.0.2; ip -4 addr", start: hold, at_end: exited}
  blue2: {segment: blue-b}
links:
  red-core: {between: [one, two], both: {delay: 10 ms}}
  blue-core: {between: [one, two], both: {delay: 20 ms}}
run: {hold: 8 s}
timeline:
  - {at: hold + 2 s, link-down: red-core, for: 1 s}
"""  # noqa: E501


def test_tables_of_a_router_are_apart_and_come_back_after_a_cut(place: Place) -> None:
    (place.cwd / "vrf.yaml").write_text(FILE)
    run = place.run("--json", file="vrf.yaml")
    log = (run.run_dir / "raw/logs/blue1.other.log").read_text()
    assert log.count("0 received, +3 errors") == 2 and "No route" in log
    assert "1 packets transmitted, 0 received" in log, "nor between two segments of one router"
    proof = json.loads((run.run_dir / "proof.json").read_text())
    ways = [one for one in proof if one["direction"] == "path"]
    assert {(one["link"], one["verdict"]) for one in ways if one["quantity"] == "round trip"} >= {
        (way, "holds") for way in ("red1 -> red2 (IPv4)", "red1 -> red2 (IPv6)", "blue1 -> blue2 (IPv4)")
    }
    asked = pl.read_parquet(run.run_dir / "messages.parquet").with_columns(
        ((pl.col("scheduled_ns") - pl.col("scheduled_ns").min()) / 1e9).alias("s")
    )
    for sender in ("red1-ask", "red1-ask6"):
        own = asked.filter(sender=sender)
        assert own.filter(pl.col("s") < 1.2)["round_trip_ns"].null_count() == 0
        cut = own.filter(pl.col("s").is_between(1.6, 2.2))["round_trip_ns"]
        assert cut.len() >= 5 and cut.null_count() == cut.len()
        assert own.filter(pl.col("s") > 4)["round_trip_ns"].null_count() == 0
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    assert not manifest["suspect"], manifest["warnings"]
