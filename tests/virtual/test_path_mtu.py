"""Tests a link with a small MTU between routers: larger packets cause ICMP messages, are fragmented, or are
sent in smaller pieces.
"""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from virtual_place import Place, Ran

ROUTED = """\
name: narrow
segments: {west: {subnet: 10.1.0.0/24}, east: {subnet: 10.2.0.0/24}}
nodes:
  near:
    segment: west
    software:
      whole: {command: "ping -n -c 2 -M do -s 1400 {{ addresses.far }}; ip route get {{ addresses.far }}"}
      fits: {command: "ping -n -c 2 -M do -s 1252 {{ addresses.far }}"}
      cut: {command: "ping -n -c 2 -M dont -s 1400 {{ addresses.far }}"}
      bulk: {command: "exec iperf3 -c {{ addresses.far }} -n 2M", start: ramp}
  r1: {segment: west, forward: true}
  r2: {segment: east, forward: true}
  far:
    segment: east
    software: {server: {command: "exec iperf3 --server", role: server, ready: {tcp: 5201}}}
  small:
    segment: west
    mtu: 1000
    software:
      whole: {command: "ping -n -c 2 -M do -s 1000 {{ addresses.near }} || true"}
links:
  narrow: {between: [r1, r2], both: {delay: 1 ms, rate: 100 Mbit/s}, mtu: 1280}
captures: {there: {at: link narrow, filter: tcp port 5201}}
run: {hold: 8 s}
"""


def said(ran: Ran, program: str, node: str = "near") -> str:
    return (ran.run_dir / f"raw/logs/{node}.{program}.log").read_text()


def lengths(pcap: Path) -> list[int]:
    """Returns the lengths of the frames on the wire, from a pcap file."""
    data, at, found = pcap.read_bytes(), 24, []
    while at < len(data):
        kept, whole = struct.unpack_from("<II", data, at + 8)
        found.append(whole)
        at += 16 + kept
    return found


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 (make setup installs it)")
def test_path_mtu_discovery_works_across_routers(place: Place) -> None:
    (place.cwd / "narrow.yaml").write_text(ROUTED)
    ran = place.run(file="narrow.yaml")
    assert "Frag needed and DF set (mtu = 1280)" in said(ran, "whole"), "the router's ICMP came back"
    assert re.search(r"expires .* mtu 1280", said(ran, "whole")), "and the sender remembers"
    assert " 0% packet loss" in said(ran, "fits"), "1280 bytes pass"
    assert " 0% packet loss" in said(ran, "cut"), "without DF the router cuts, the goal puts together"
    assert "mtu = 1000" in said(ran, "whole", "small") or "message too long" in said(ran, "whole", "small")

    assert "iperf Done" in said(ran, "bulk"), "TCP goes on with smaller segments"
    assert max(lengths(ran.run_dir / "pcap/there.pcap")) == 1280 + 14
