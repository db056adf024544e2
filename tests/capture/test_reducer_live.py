"""Compares vnet-reduce with tshark on real traffic: mosquitto behind a link that is too narrow for its
messages.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from oracle import IN_ORDER, assert_agree, need

from capture.tcpdump import SETTLE_NS, argv, listening, statistics

HERE = Path(__file__).parent
NARROW = "2mbit"
pytestmark = pytest.mark.root


@dataclass(frozen=True)
class Point:
    device: str
    snaplen: int
    filter: str


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Yields two namespaces joined by a veth pair, 10.99.0.1 and 10.99.0.2; deletes both at the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    need("tshark", "tcpdump", "mosquitto", "ip", "tc")
    a, b = (f"vnettest{os.getpid()}{side}" for side in "ab")
    ip("netns", "add", a)
    try:
        ip("netns", "add", b)
        try:
            ip("-n", a, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", b)
            for number, space in ((1, a), (2, b)):
                ip("-n", space, "addr", "add", f"10.99.0.{number}/24", "dev", "v0")
                ip("-n", space, "link", "set", "v0", "up")
                ip("-n", space, "link", "set", "lo", "up")
                offloads = ["ethtool", "-K", "v0", "tso", "off", "gso", "off", "gro", "off"]
                if shutil.which("ethtool"):
                    subprocess.run(["ip", "netns", "exec", space, *offloads], check=True, capture_output=True)
            yield a, b
        finally:
            ip("netns", "del", b)
    finally:
        ip("netns", "del", a)


def until(what: str, seconds: float, check: object) -> None:
    deadline = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes], by: signal.Signals) -> None:
    process.send_signal(by)
    process.wait(10)


@pytest.mark.parametrize(
    ("rate", "snaplen", "messages", "size"),
    [("40mbit", 0, 150, 717), (NARROW, 0, 150, 5000), (NARROW, 96, 150, 717)],
)
def test_a_broker_behind_a_narrow_link(
    pair: tuple[str, str], tmp_path: Path, rate: str, snaplen: int, messages: int, size: int
) -> None:
    client, server = pair
    for space in pair:  # a short queue loses packets, so that TCP retransmits
        shape = [
            "tc",
            "-n",
            space,
            "qdisc",
            "add",
            "dev",
            "v0",
            "root",
            "tbf",
            "rate",
            rate,
            "burst",
            "4000",
            "limit",
            "9000",
        ]
        subprocess.run(shape, check=True)
    config = tmp_path / "mosquitto.conf"
    config.write_text("listener 1883 10.99.0.2\nallow_anonymous true\nuser root\nmax_inflight_messages 0\n")
    log = (tmp_path / "broker.log").open("wb")
    broker = subprocess.Popen(
        ["ip", "netns", "exec", server, "mosquitto", "-c", str(config)], stderr=log, stdout=log
    )
    pcap, said = tmp_path / "live.pcap", tmp_path / "tcpdump.log"
    command = ["ip", "netns", "exec", client, *argv(Point("v0", snaplen, "tcp"))]
    with pcap.open("wb") as sink, said.open("wb") as words:
        tcpdump = subprocess.Popen(command, stdout=sink, stderr=words)
    try:
        until("tcpdump listens", 10, lambda: listening(said.read_text()))
        probe = ["ip", "netns", "exec", server, "ss", "-Hltn", "sport = 1883"]
        until("the broker listens", 10, lambda: subprocess.run(probe, capture_output=True, check=True).stdout)
        load = [sys.executable, str(HERE / "mqttclient.py"), "10.99.0.2", str(messages), str(size)]
        subprocess.run(["ip", "netns", "exec", client, *load], check=True, timeout=60)
        time.sleep(SETTLE_NS / 1e9)  # nothing shows when tcpdump has received every packet
    finally:
        stop(tcpdump, signal.SIGINT)
        stop(broker, signal.SIGTERM)
        log.close()
    counted = statistics(said.read_text())
    # tshark does not reassemble segments that the snaplen cut, and loses its position in some overlapping
    # segments; for these, the types are compared with the sent ones.
    without = ("app_types",) if snaplen or rate == NARROW else ()
    ours, counts = assert_agree(pcap, tmp_path / "live.parquet", *IN_ORDER, without=without)
    assert counts.packets == counted.packets and counted.dropped_kernel == 0 and counts.nanosecond
    assert rate != NARROW or counts.retransmissions > 0
    if snaplen:  # several MQTT packets share a segment, so some headers are in the cut part
        assert counts.app_unknown > 0 and counts.snapped > 0
        return
    kinds = [kind for row in ours if row["dst_port"] == 1883 for kind in row["app_types"] or []]
    each = (["PUBLISH"], ["PUBLISH"], ["PUBLISH", "PUBREL"])
    messages_sent = [kind for number in range(messages) for kind in each[number % 3]]
    assert kinds == ["CONNECT", "SUBSCRIBE", *messages_sent, "PINGREQ", "DISCONNECT"]
    assert counts.app_unknown == 0 and counts.snapped == 0
