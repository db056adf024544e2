"""Tests labs of pytest in a container; test_in_a_container.py and tests/bare/contained.sh run this file
there.
"""

from __future__ import annotations

import subprocess

import pytest

import vnet
from vnet.labs import Lab

asks = {"to": "b", "request": {"size": "100 B", "reply": "100 B", "rate": "10 /s", "rate_of": "client"}}
PAIR = (
    vnet.Topology("pair")
    .segment("lan", "10.9.0.0/24")
    .node("a", "lan", software={"asks": {"udp": asks}})
    .node("b", "lan", software={"answers": {"udp": {"listen": 9000}}})
    .link("wan", "a", "lan", both={"delay": "5 ms"})
    .phases(hold="3 s", drain="1 s")
)

MORE = ["mount -t tmpfs x /mnt", "unshare -n true", "unshare -U true", "touch /etc/x"]


@pytest.mark.parametrize("refused", MORE)
def test_nothing_more_is_allowed(refused: str) -> None:
    assert subprocess.run(refused.split(), capture_output=True).returncode != 0


@pytest.mark.vnet(PAIR, time="virtual")
def test_in_virtual_time(lab: Lab) -> None:
    lab.assert_proven()
    assert "5 ms" < lab.flow("a.asks").latency_p50 < "6 ms"


@pytest.mark.vnet(PAIR, kernel="uml")
def test_in_real_time(lab: Lab) -> None:
    lab.link("wan").impair(delay="50 ms")
    assert "1 received" in lab.node("a").exec("ping -c 1 10.9.0.2").stdout
