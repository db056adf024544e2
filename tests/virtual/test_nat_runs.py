"""Tests NAT, DHCP and DNS in virtual time: addresses and names, and that only the router's address is seen
outside.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

MISSING = [program for program in ("nft", "dnsmasq", "udhcpc") if shutil.which(program) is None]


# After a cut, a client of DHCP asks for the address of its router again, once a second (ARP).
AGAIN_NS = 1_100_000_000
CUTS = """
timeline:
  - {at: hold + 1 s, disconnect: access-station2, up: 4 s, down: 500 ms, for: 18 s, label: cut}
"""


@pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} (make setup installs them)")
def test_stations_behind_a_nat(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "nat.yaml"
    file.write_text((PROJECT / "topologies" / "nat.yaml").read_text() + CUTS)
    run = place.run("-p", "hold=20s", "-p", "stations=2", file=str(file))
    logs = {path.stem: path.read_text() for path in (run.run_dir / "raw" / "logs").glob("*.log")}

    bound = (
        "vnet: bound 192.168.1.{}/24 for 600 s by 192.168.1.1, router 192.168.1.1, name server 192.168.1.1"
    )
    for node, host in (("panel", 2), ("station1", 3), ("station2", 4)):
        assert bound.format(host) in logs[f"{node}.lease"]
    assert logs["station1.look"] == "203.0.113.2 192.168.1.3\n", (
        "a name of the server's own, and one by domain"
    )
    assert logs["server.visitor"].splitlines() == [
        "through the gate's port: 200",
        "to the hidden address: timed out",
    ]
    counts = {
        name: int(n) for n, name in re.findall(r'packets (\d+) .*comment "vnet: (.*)"', logs["gate.nat"])
    }
    assert counts.pop("plant is hidden") > 0
    assert counts == {"port 8080 to 192.168.1.2": 1, "from plant": 2}, "the first packet of each connection"

    asked = pl.read_parquet(run.run_dir / "messages.parquet")
    late = asked.filter(pl.col("round_trip_ns").is_null() | (pl.col("round_trip_ns") > 100_000_000))
    assert asked.height > 180 and set(late["sender"]) == {"station2"}
    cuts = list(_cuts(run.run_dir))
    assert len(cuts) > 1
    for due in late["scheduled_ns"]:
        assert any(down - 50_000_000 <= due <= up + AGAIN_NS for down, up in cuts), "late, and not near a cut"
    for due in asked.filter(pl.col("sender") == "station2")["scheduled_ns"]:
        within = any(down <= due <= up - 50_000_000 for down, up in cuts)
        assert not within or due in late["scheduled_ns"], "in a cut, and not late"
    seen = pl.read_parquet(run.run_dir / "packets" / "outside.parquet")
    addresses = set(seen["src"].drop_nulls()) | set(seen["dst"].drop_nulls())
    assert "203.0.113.1" in addresses
    assert {one for one in addresses if one.startswith("192.168.")} == {"192.168.1.2"}, (
        "only the visitor's try"
    )


LEASES = """\
name: leases
segments:
  plant: {subnet: 10.1.0.0/24}
  wan: {subnet: 10.2.0.0/24}
nodes:
  gate:
    segment: [plant, wan]
    forward: true
    software: {lease: {dhcp: {segment: plant, lease: 2 min, router: gate}}}
  giver: {segment: wan, software: {lease: {dhcp: {lease: 2 min}}, answer: {udp: {listen: 9000}}}}
  edge:
    segment: [plant, wan]
    software: {one: {dhcp-client: {segment: plant}}, two: {dhcp-client: {segment: wan}}}
  station:
    segment: plant
    software:
      lease: {dhcp-client: {}}
      ask: {udp: {to: giver, request: {size: 100 B, reply: 100 B, rate: 1 /s}}}
links: {access: {between: [station, plant], both: {delay: 1 ms}}}
timeline: [{at: hold + 100 s, link-down: access, for: 125 s}]
run: {hold: 280 s}
"""


@pytest.mark.sweep
@pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} (make setup installs them)")
def test_a_lease_is_renewed_or_lost_without_a_suspect_run(place: Place, tmp_path: Path) -> None:
    """Shows that a lease ends if the station's link is cut for longer, and that neither this nor a renewal
    makes the run suspect.
    """
    file = tmp_path / "leases.yaml"
    file.write_text(LEASES)
    run = place.run(file=str(file))
    logs = {path.stem: path.read_text() for path in (run.run_dir / "raw" / "logs").glob("*.log")}
    for name in ("one", "two"):
        assert (
            logs[f"edge.{name}"].count("vnet: bound") == 1 and logs[f"edge.{name}"].count("vnet: renew") >= 4
        )
    assert "lease lost" in logs["station.lease"] and logs["station.lease"].count("vnet: bound") == 2
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    assert manifest["warnings"] == [] and not manifest["suspect"]


def _cuts(run_dir: Path) -> Iterator[tuple[int, int]]:
    """Yields the times at which the link went down and came up again, as the run applied the random cuts."""
    applied = pl.read_parquet(run_dir / "events.parquet").filter(
        pl.col("action").is_in(["link-down", "link-up"])
    )
    assert applied["ok"].all() and set(applied["targets"].list.first()) == {"access-station2"}
    times = applied["t_ns"].to_list()
    yield from zip(times[::2], times[1::2], strict=True)
