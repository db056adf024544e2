"""Tests frames between two real nodes: each is accounted for, trials are distinguished, and mistakes are
named.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

SECOND = 1_000_000_000


def trial(launcher: Any, number: int, size: int, rate_fps: float, count: int) -> dict[str, Any]:
    """Runs one trial from a to b, and returns the answers of the sender ("tx") and the receiver ("rx")."""
    armed = launcher.do("frames", node="b", action="listen", iface="eth0", trial=number, count=count)
    sent = send(launcher, armed["mac"], number, size, rate_fps, count)
    got = launcher.do("frames", node="b", action="collect", sent=sent["sent"], wait_ns=2 * SECOND)
    return {"tx": sent, "rx": got}


def send(launcher: Any, mac: str, number: int, size: int, rate_fps: float, count: int) -> dict[str, Any]:
    found: dict[str, Any] = launcher.do(
        "frames", node="a", action="send", iface="eth0", to=mac, trial=number, count=count, size=size,
        rate_fps=rate_fps, longest_ns=20 * SECOND,
    )  # fmt: skip
    return found


@pytest.mark.root
@pytest.mark.parametrize("size", [64, 512, 1518])
def test_a_plain_path_carries_every_frame_once(launcher: Any, size: int) -> None:
    got = trial(launcher, 1, size, 2000.0, 1000)
    tx, rx = got["tx"], got["rx"]
    assert (tx["sent"], tx["refused"], rx["received"]) == (1000, 0, 1000)
    assert [rx[k] for k in ("duplicates", "corrupted", "foreign", "ring_dropped", "early")] == [0] * 5
    assert sum(n for _, _, n in rx["latency"]["buckets"]) == 1000
    assert rx["latency"]["min_ns"] <= rx["tagged_ns"] <= rx["latency"]["max_ns"]
    # Open loop: 1,000 frames at 2,000 a second take half a second to send, longer on a busy machine.
    assert tx["last_ns"] - tx["first_ns"] >= 0.95 * 999 / 2000 * SECOND


@pytest.mark.root
def test_back_to_back_frames_do_not_wait_for_a_schedule(launcher: Any) -> None:
    got = trial(launcher, 1, 64, 0.0, 20_000)
    assert got["rx"]["received"] + got["rx"]["ring_dropped"] == 20_000
    assert got["tx"]["last_ns"] - got["tx"]["first_ns"] < 5 * SECOND


@pytest.mark.root
def test_frames_of_another_trial_are_not_counted(launcher: Any) -> None:
    armed = launcher.do("frames", node="b", action="listen", iface="eth0", trial=5, count=10)
    send(launcher, armed["mac"], 4, 64, 0.0, 10)
    got = launcher.do("frames", node="b", action="collect", sent=10, wait_ns=SECOND // 5)
    assert (got["received"], got["foreign"]) == (0, 10)


@pytest.mark.root
def test_a_receiver_reports_as_soon_as_nothing_is_missing(launcher: Any) -> None:
    begin = time.monotonic()
    launcher.do("frames", node="b", action="listen", iface="eth0", trial=1, count=10)
    got = launcher.do("frames", node="b", action="collect", sent=0, wait_ns=30 * SECOND)
    assert got["received"] == 0 and time.monotonic() - begin < 10


@pytest.mark.root
def test_a_trial_given_up_makes_room_for_the_next(launcher: Any) -> None:
    launcher.do("frames", node="b", action="listen", iface="eth0", trial=1, count=10)
    assert trial(launcher, 2, 64, 0.0, 10)["rx"]["received"] == 10


@pytest.mark.root
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "listen", "iface": "eth7", "trial": 1, "count": 1}, "eth7: not on this node"),
        ({"action": "collect", "sent": 1, "wait_ns": 1}, "nothing listens"),
        ({"action": "shout"}, "write listen, send or collect"),
        ({"action": "listen", "iface": "eth0"}, "missing field `trial`"),
    ],
)  # fmt: skip
def test_mistakes_are_named(launcher: Any, fields: dict[str, Any], said: str) -> None:
    answer = launcher.ask("frames", node="b", **fields)
    assert not answer["ok"] and said in answer["error"]


@pytest.mark.root
@pytest.mark.parametrize(
    ("size", "said"), [(63, "from 64 to 9018 bytes"), (1600, "must fit the interface's MTU")]
)
def test_sizes_that_cannot_be_sent_are_refused(launcher: Any, size: int, said: str) -> None:
    answer = launcher.ask(
        "frames", node="a", action="send", iface="eth0", to="02:00:00:00:00:01", trial=1, count=1, size=size,
        rate_fps=0.0, longest_ns=SECOND,
    )  # fmt: skip
    assert not answer["ok"] and said in answer["error"]


@pytest.mark.root
@pytest.mark.parametrize("bypass", [False, True])
def test_a_link_that_is_down_ends_the_trial_in_its_time(launcher: Any, bypass: bool) -> None:
    """Shows that the trial ends in time: with a qdisc the frames are refused, without one they wait until the
    trial's end.
    """
    subprocess.run(["ip", "-n", launcher.core, "link", "set", "p0", "down"], check=True)
    begin = time.monotonic()
    sent = launcher.do(
        "frames", node="a", action="send", iface="eth0", to="02:00:00:00:00:01", trial=1, count=200, size=64,
        rate_fps=1000.0, longest_ns=SECOND // 2, bypass=bypass,
    )  # fmt: skip
    assert time.monotonic() - begin < 20
    assert sent["waits"] > 0 if bypass else sent["sent"] > 0
