"""Tests WireGuard in virtual time: what two sites exchange crosses the network between them in the tunnel."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from virtual_place import Place

MISSING = [program for program in ("wg", "wireguard-go") if shutil.which(program) is None]
FILE = """\
name: tunnels
segments:
  west: {subnet: 10.1.0.0/24}
  east: {subnet: 10.2.0.0/24}
  wan-w: {subnet: 203.0.113.0/24}
  wan-e: {subnet: 203.0.113.0/24}
nodes:
  gw: {segment: [west, wan-w], forward: true, software: {vpn: {wireguard: {address: 10.99.0.1/24, peers: {ge: {allows: [10.2.0.0/24]}}}}}}
  ge: {segment: [east, wan-e], forward: true, software: {vpn: {wireguard: {address: 10.99.0.2/24, peers: {gw: {allows: [10.1.0.0/24]}}}}}}
  w1: {segment: west, software: {ask: {udp: {to: e1, request: {size: 200 B, reply: 200 B, rate: 10 /s}}}}}
  e1: {segment: east, software: {in: {udp: {listen: 9000}}}}
links:
  wan: {between: [wan-w, wan-e], both: {delay: 10 ms}}
captures:
  between: {at: link wan}
run: {hold: 8 s}
"""  # noqa: E501


@pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} (make setup installs them)")
def test_two_sites_talk_through_the_tunnel_only(place: Place) -> None:
    (place.cwd / "tunnels.yaml").write_text(FILE)
    run = place.run("--json", file="tunnels.yaml")
    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    assert asked.height > 70 and asked["round_trip_ns"].null_count() == 0
    longest = asked["round_trip_ns"].sort()[asked.height * 9 // 10]
    assert isinstance(longest, int) and 20_000_000 < longest < 25_000_000
    packets = pl.read_parquet(run.run_dir / "packets" / "between.parquet")
    hosts = set(packets["src"].drop_nulls()) | set(packets["dst"].drop_nulls())
    assert hosts == {"203.0.113.1", "203.0.113.2"}, "no address of the sites is seen between them"
    # 200 bytes, IP and UDP in WireGuard's 32 bytes, padded to 16; IP, UDP and Ethernet around it
    inner = -(-(200 + 28) // 16) * 16
    sizes = packets.group_by("wire_bytes").len().sort("len")["wire_bytes"].to_list()
    assert sizes[-1] == inner + 32 + 28 + 14
    for node in ("gw", "ge"):
        log = (run.run_dir / f"raw/logs/{node}.vpn.log").read_text()
        assert log == "vnet: wg0 by wireguard-go\nvnet: ready\n"
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    assert not manifest["suspect"], manifest["warnings"]
