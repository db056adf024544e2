"""Tests DHCPv6 in virtual time: leases, their renewal, and their end after a cut."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from virtual_place import Place

MISSING = [program for program in ("dnsmasq", "dhclient") if shutil.which(program) is None]
FILE = """\
name: leases6
segments:
  office: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  hall: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  wan: {subnet: "fd00:2::/64"}
  old: {subnet: 10.3.0.0/24}
nodes:
  gate:
    segment: [office, wan, old]
    forward: true
    software: {six: {dhcp6: {segment: office, lease: 2 min, dns: gate}}}
  far: {segment: wan, software: {answers: {udp: {listen: 9000}}}}
groups:
  station:
    count: 2
    segment: hall
    software:
      own: {dhcp6-client: {}}
      ask: {udp: {to: far, request: {size: 100 B, reply: 100 B, rate: 2 /s, timeout: 1 s}}}
links: {line: {between: [office, hall], both: {delay: 1 ms}}}
run: {hold: 300 s}
timeline: [{at: hold + 100 s, link-down: line, for: 130 s}]
"""


@pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} (make setup installs them)")
def test_stations_ask_with_leased_addresses_and_renew_them(place: Place) -> None:
    """Shows that clients get the planned address and ask over it, renew it at half of the lease, and lose it
    with their routes after a cut that is longer than the lease.
    """
    (place.cwd / "leases6.yaml").write_text(FILE)
    run = place.run("--json", file="leases6.yaml")
    logs = {path.stem: path.read_text() for path in (run.run_dir / "raw" / "logs").glob("*.log")}
    for number in (1, 2):
        log = logs[f"station{number}.own"]
        assert f"vnet: bound fd00:1::{number + 1}/64 for 120 s, name server fd00:1::1" in log
        assert log.count("vnet: renew") >= 1
        # dhclient ends itself where it would ask again at the end of its lease, else it says that it ended
        assert ("vnet: the client ended" in log) != (f"vnet: expire of fd00:1::{number + 1}" in log)
        assert log.count("vnet: bound") == 2, "after the cut"
    asked = pl.read_parquet(run.run_dir / "messages.parquet").with_columns(
        ((pl.col("scheduled_ns") - pl.col("scheduled_ns").min()) / 1e9).alias("s")
    )
    before = asked.filter(pl.col("s") < 95)
    assert before.height > 180 and before["round_trip_ns"].null_count() == 0
    assert asked.filter(pl.col("s").is_between(110, 220))["round_trip_ns"].null_count() > 180
    assert asked.filter(pl.col("s") > 270)["round_trip_ns"].null_count() == 0
