"""Compares bulk transfers between nodes over a link of 20 Mbit/s with iperf3 over the same link."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from typing import Any

import pytest
from agent_launcher import Launcher
from agent_roles import SECOND, flow, item, peer, play, records

SHAPE = ["root", "tbf", "rate", "20mbit", "burst", "16kb", "latency", "50ms"]
SECONDS = 3


def link(launcher: Launcher) -> None:
    launcher.lab_up(["a", "c"])
    for device in ("p0", "p1"):
        add = ["tc", "-n", launcher.core, "qdisc", "add", "dev", device, *SHAPE]
        subprocess.run(add, check=True)


def sink(node: str) -> dict[str, Any]:
    return item("bulk", node, {"listen": 5201, "to": []}, listens=True)


def load(node: str, seconds: float, **more: Any) -> dict[str, Any]:
    whole = {"listen": None, "to": [peer("a", 0, 5201)], "start_ns": 0, "stop_ns": int(seconds * SECOND)}
    sent = flow(0, "stream", 1, seconds) | {"schedule": None}
    return item("bulk", node, whole | more, sent)


def bits_per_second(rows: list[list[str]]) -> float:
    """Returns the rate between the first and the last record of one side of a transfer."""
    first, last = rows[0], rows[-1]
    return (int(last[5]) - int(first[5])) * 8 / ((int(last[4]) - int(first[4])) / SECOND)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_greedy_transfer_gets_what_iperf3_gets(launcher: Launcher) -> None:
    link(launcher)
    inside = ["ip", "netns", "exec"]
    server = subprocess.Popen([*inside, launcher.netns("a"), "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    ask = [*inside, launcher.netns("c"), "iperf3", "-c", "10.77.0.1", "-C", "cubic", "-t", str(SECONDS), "-J"]
    theirs = json.loads(subprocess.check_output(ask))["end"]["sum_received"]["bits_per_second"]
    server.wait(10)
    play(launcher, [sink("a"), load("c", SECONDS, congestion="cubic")], SECONDS + 1)
    rows = records(launcher.directory, "B")
    ours = bits_per_second([r for r in rows if r[3] == "1"])
    assert ours == pytest.approx(theirs, rel=0.05), rows
    last = [r for r in rows if r[3] == "0"][-1]
    assert int(last[6]) > 0 and int(last[9]) > 1_000_000, "a queue of tens of milliseconds is seen in the RTT"
    what = [r[2] for r in records(launcher.directory, "C") if r[1] == "c"]
    assert what == ["connecting", "connected", "disconnected"]


def test_datagrams_beyond_the_rate_are_counted_as_lost(launcher: Launcher) -> None:
    link(launcher)
    load_udp = load("c", SECONDS, protocol="udp", rate_bps=40_000_000, size=1000)
    play(launcher, [sink("a"), load_udp], SECONDS + 0.5)
    rows = records(launcher.directory, "B")
    sent, got = ([r for r in rows if r[3] == leg][-1] for leg in "01")
    assert int(sent[6]) == pytest.approx(40_000_000 / 8000 * SECONDS, rel=0.01)
    share = int(got[7]) / (int(got[6]) + int(got[7]))
    # The token bucket counts 1,042 bytes for each frame, so 19.2 Mbit/s of the 40 Mbit/s of payload pass.
    assert 0.45 < share < 0.6
    assert int(got[6]) + int(got[7]) == pytest.approx(int(sent[6]), rel=0.01)
