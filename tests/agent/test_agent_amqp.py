"""Tests the agent's AMQP clients with pika through a real RabbitMQ, in both directions; tshark checks the
frames.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from agent_amqp import BROKER, CONSUME, PUBLISH, rabbit, spec
from agent_launcher import Launcher
from agent_roles import begin, flow, item, records

from capture.pcap import reduce_pcap
from orchestrator.software.rabbitmq.kind import SERVER

pytestmark = pytest.mark.skipif(not os.access(SERVER, os.X_OK), reason="rabbitmq-server is not installed")

COUNT = 200
RELAY = Path(__file__).with_name("amqp_relay.py")


def test_pika_takes_and_gives_every_message_and_tshark_knows_every_frame(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.lab_up(["b", "p", "c", "relay"])
    launcher.socket.settimeout(150)  # a busy machine starts the broker slowly
    launcher.do("start", node="b", software=rabbit())
    pcap = tmp_path / "b.pcap"
    inside = ["ip", "netns", "exec"]
    tcpdump = [*inside, launcher.netns("b"), "tcpdump", "-U", "-i", "eth0", "-w", str(pcap), "port", "5672"]
    with subprocess.Popen(tcpdump, stderr=subprocess.PIPE, text=True) as capture:
        assert capture.stderr is not None
        assert any("listening" in line for line in iter(capture.stderr.readline, ""))
        argv = [
            *inside,
            launcher.netns("relay"),
            sys.executable,
            str(RELAY),
            BROKER,
            "said",
            "heard",
            str(COUNT),
        ]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as relay:
            assert relay.stdout is not None and relay.stdout.readline() == "ready\n"
            items = [
                item("amqp", "p", spec(publish=PUBLISH), flow(0, "publish", COUNT, 2, start_ns=10**9)),
                item("amqp", "c", spec(consume=CONSUME)),
            ]
            begin(launcher, items)
            told = [json.loads(line) for line in relay.stdout]  # the relay ends after the last message
        deadline = time.monotonic() + 60
        while launcher.do("pending")["totals"]["received"] < COUNT and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2.5)  # both sides are silent here, so heartbeats are sent, one every 2 s
        totals = launcher.do("finish")["totals"]
        capture.terminate()
    assert (totals["scheduled"], totals["settled"], totals["received"]) == (COUNT, COUNT, COUNT)
    assert told == [{"key": "meter.7", "mode": 2, "bytes": 100, "redelivered": False}] * COUNT
    assert Counter(row[2] for row in records(tmp_path, "R")) == {str(n): 1 for n in range(COUNT)}
    steps = [row[2] for row in records(tmp_path, "C") if row[1] == "c"]
    assert steps == ["connecting", "connected", "subscribed", "disconnected"]
    _agree(pcap)


def _agree(pcap: Path) -> None:
    """Asserts that the reducer and tshark count the same methods, that the content has the expected number of
    bytes, and that both sides sent heartbeats.
    """
    said = ["tshark", "-r", str(pcap), "-T", "fields", "-e", "amqp.method.method", "-e", "_ws.malformed"]
    lines = subprocess.run(said, capture_output=True, text=True, check=True).stdout.splitlines()
    methods = Counter(number for line in lines for number in line.split("\t")[0].split(",") if number)
    assert not any(line.split("\t")[1] for line in lines), "tshark calls a frame malformed"
    reduce_pcap(pcap, pcap.with_suffix(".parquet"))
    table = pl.read_parquet(pcap.with_suffix(".parquet"))
    types = Counter(kind for row in table["app_types"].drop_nulls() for kind in row)
    ours = Counter({kind: count for kind, count in types.items() if "." in kind})
    assert sum(ours.values()) == sum(methods.values())
    assert ours["Basic.Publish"] == ours["Basic.Deliver"] == types["Content-Header"] / 2 == 2 * COUNT
    assert types["Heartbeat"] > 0 and "UNKNOWN" not in types
    new = table.filter(pl.col("analysis").is_null())  # on a busy machine TCP retransmits some bytes
    assert new["data_bytes"].sum() == 4 * COUNT * 100
