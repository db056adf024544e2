"""Tests dual stack in virtual time: flows of both families over the plan's routes and over those of FRR,
proofs of both, names, and hosts that configure themselves.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

MS = 10**6
FAMILIES = ("IPv4", "IPv6")
PLAIN = """\
name: both
segments: {west: {subnet: [10.1.0.0/24, "fd00:1::/64"]}, east: {subnet: [10.2.0.0/24, "fd00:2::/64"]}}
nodes:
  client:
    segment: west
    software:
      four: {udp: {to: server, request: {size: 100 B, reply: 100 B, rate: 20 /s, class: four}}}
      six: {udp: {to: server, family: ipv6, request: {size: 100 B, reply: 100 B, rate: 20 /s, class: six}}}
      names: {command: "getent ahosts server; ip -6 route get fd00:2::1", start: hold, at_end: exited}
  server: {segment: east, software: {in: {udp: {listen: 9000}}}}
  r1: {segment: west, forward: true}
  r2: {segment: east, forward: true}
links: {wan: {between: [r1, r2], both: {rate: 10 Mbit/s, delay: 10 ms}}}
captures: {server: {at: node server}}
timeline: [{at: hold + 2 s, link-down: wan, for: 1 s}]
run: {hold: 6 s, drain: 2 s}
"""


def test_both_families_reach_the_server_and_are_proven(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(PLAIN)
    run = place.run("--json", file=str(file))
    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    for name in ("four", "six"):
        own = asked.filter(pl.col("class") == name)
        back = own["round_trip_ns"].drop_nulls()
        assert own.height > 100 and 15 <= own.height - back.len() <= 25, "lost in the second of the cut"
        assert 20 * MS < back.min() < back.max() < 100 * MS, (
            "routes and addresses return; neighbours are asked for"
        )  # type: ignore[operator]
    seen = pl.read_parquet(run.run_dir / "packets" / "server.parquet")
    assert {"10.1.0.1", "fd00:1::1"} <= set(seen["src"].drop_nulls())
    lines = json.loads((run.run_dir / "proof.json").read_text())
    paths = {line["link"]: line["verdict"] for line in lines if line["direction"] == "path"}
    ways = [f"{way} ({family})" for way in ("client -> server", "server -> client") for family in FAMILIES]
    assert paths == dict.fromkeys(ways, "holds")
    names = (run.run_dir / "raw" / "logs" / "client.names.log").read_text()
    assert "10.2.0.1" in names and "fd00:2::1" in names and "via fd00:1::2" in names


ROUTERS = Path("/usr/lib/frr/zebra")


@pytest.mark.skipif(not ROUTERS.exists(), reason="no frr (make setup installs it)")
@pytest.mark.timeout(300)
def test_routes_of_both_families_follow_a_cut(place: Place) -> None:
    file = PROJECT / "topologies" / "dual-stack.yaml"
    run = place.run("-p", "stations=1", file=str(file))
    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    for name in ("four", "six"):
        own = asked.filter(pl.col("class") == name)
        lost = own.filter(pl.col("round_trip_ns").is_null()).height
        assert own.height > 190 and lost < 40, f"{name}: {lost} of {own.height} lost"
        slow = own.filter(pl.col("round_trip_ns") > 0)["round_trip_ns"]
        assert slow.len() > 150


SLAAC = """\
name: slaac
segments: {lan: {subnet: [10.1.0.0/24, "fd00:1::/64"]}, wan: {subnet: [10.2.0.0/24, "fd00:2::/64"]}}
nodes:
  gate: {segment: [lan, wan], forward: true, software: {ra: {advertise: {segment: lan}}}}
  server: {segment: wan, software: {in: {udp: {listen: 9000}}}}
groups:
  station:
    count: 2
    segment: lan
    software:
      own: {slaac: {}}
      six: {udp: {to: server, family: ipv6, request: {size: 100 B, reply: 100 B, rate: 5 /s}}}
      routes: {command: "ip -6 route show default; ip -6 addr show dev eth0", start: hold, at_end: exited}
run: {hold: 5 s, drain: 1 s}
"""


@pytest.mark.skipif(shutil.which("dnsmasq") is None, reason="no dnsmasq (make setup installs it)")
def test_hosts_configure_themselves_from_an_advertisement(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "slaac.yaml"
    file.write_text(SLAAC)
    run = place.run("--json", file=str(file))
    logs = {path.stem: path.read_text() for path in (run.run_dir / "raw" / "logs").glob("*.log")}
    for n, address in ((1, "fd00:1::2/64"), (2, "fd00:1::3/64")):
        assert f"vnet: took {address}, router fe80::" in logs[f"station{n}.own"]
        assert "proto ra" in logs[f"station{n}.routes"] and "proto static" not in logs[f"station{n}.routes"]
        assert f"{address} scope global dynamic" in logs[f"station{n}.routes"].replace("mngtmpaddr ", "")
    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    assert asked.height >= 20 and set(asked["sender"]) == {"station1", "station2"}
    assert asked["round_trip_ns"].null_count() == 0
    assert not json.loads((run.run_dir / "manifest.json").read_text())["warnings"]
