"""Tests the agent's MQTT clients with a real mosquitto: every message must be accounted for."""

from __future__ import annotations

import csv
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher

pytestmark = pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")

SECOND = 1_000_000_000


def broker(persistence: bool = False) -> dict[str, Any]:
    config = "listener 1883\nallow_anonymous true\nuser root\nmax_queued_messages 100000\n"
    if persistence:
        config += "persistence true\npersistence_location ./\n"
    process = {
        "argv": ["/usr/sbin/mosquitto", "-c", "mosquitto.conf"],
        "files": [{"path": "mosquitto.conf", "content": config, "mode": 0o644}],
        "ready": {"tcp_port": 1883, "log": None, "command": None, "deadline_ns": 5 * SECOND},
    }
    return {"name": "mosquitto", "kind": "mosquitto", "role": "broker", "process": process}


def publish(
    qos: int, rate: float, stop_s: float, index: int = 0, count: int = 1, kind: str = "own"
) -> dict[str, Any]:
    """Returns the `publish` part of a client's specification, and its flow."""
    schedule = {
        "kind": kind,
        "rates": [{"from_ns": 0, "per_s": rate}],
        "seed": 5,
        "index": index,
        "count": count,
        "arrivals": "periodic",
    }
    flow = {
        "number": index, "pattern": "publish", "payload": {"kind": "metering-xml", "bytes": 717},
        "schedule": schedule, "start_ns": int(0.3 * SECOND), "stop_ns": int(stop_s * SECOND),
    }  # fmt: skip
    return {"publish": {"topic": "meters/all", "qos": qos, "inflight": 20, "queue": 10000}, "flow": flow}


def client(
    name: str, version: str = "3.1.1", pub: dict[str, Any] | None = None, sub: int | None = None,
    clean: bool = True, reconnect_s: float = 0.1, connect_s: float = 0,
) -> dict[str, Any]:  # fmt: skip
    spec = {
        "broker": "10.77.0.1", "port": 1883, "version": version, "keepalive_s": 30, "clean_session": clean,
        "publish": pub and pub["publish"],
        "subscribe": [] if sub is None else [{"topic": "meters/#", "qos": sub}],
        "reconnect_ns": int(reconnect_s * SECOND),
    }  # fmt: skip
    session = {"endpoint": name, "connect_ns": int(connect_s * SECOND), "disconnect_ns": 60 * SECOND}
    software = {"name": "mqtt", "kind": "mqtt", "role": "client", "session": session, "spec": spec}
    return {"node": name, "software": software, "flows": [pub["flow"]] if pub else []}


def run(launcher: Launcher, items: list[dict[str, Any]], seconds: float) -> None:
    launcher.do("messages", path=str(launcher.directory / "messages.csv"))
    launcher.do("workload", items=items)
    offset = launcher.do("hello")["clock_offset_ns"]
    launcher.do("go", t0_ns=offset + time.monotonic_ns())
    time.sleep(seconds)


def drain(launcher: Launcher, seconds: float = 10) -> dict[str, Any]:
    """Waits until no message is pending and no more arrive, then finishes and returns the answer."""
    deadline, before = time.monotonic() + seconds, -1
    while time.monotonic() < deadline:
        now = launcher.do("pending")
        if now["pending"] == 0 and now["totals"]["received"] == before:
            break
        before = now["totals"]["received"]
        time.sleep(0.3)
    return launcher.do("finish")


def records(directory: Path, kind: str) -> list[list[str]]:
    with (directory / "messages.csv").open() as file:
        return [row for row in csv.reader(file) if row[0] == kind]


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_message_arrives_once_on_a_quiet_network(launcher: Launcher, qos: int, version: str) -> None:
    names = ["broker", "a", "b", "s"]
    launcher.lab_up(names)
    ready = launcher.do("start", node="broker", software=broker())
    assert ready["pid"] > 0
    pubs = [client(n, version, publish(qos, 50, 1.5, i, 2, "shared")) for i, n in enumerate("ab")]
    pubs[0] = client("a", version, publish(qos, 50, 1.5, 0, 2, "shared"), sub=qos)
    run(launcher, [*pubs, client("s", version, sub=qos)], 1.7)
    totals = drain(launcher)["totals"]
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    # 50 messages/s from 0.3 s to 1.5 s after the start, of both publishers together
    assert totals["scheduled"] == len(sent) == 60
    assert {row[8] for row in sent} == {"sent" if qos == 0 else "settled"}
    expected = {(row[1], row[2]) for row in sent}
    for subscriber in ("a", "s"):
        mine = [(row[1], row[2]) for row in got if row[3] == subscriber]
        assert sorted(mine) == sorted(expected)
    for row in sent:
        assert row[3] == "717"
        scheduled, left, settled = int(row[4]), int(row[5]), int(row[6])
        assert 0 <= left - scheduled < SECOND // 4
        assert settled == 0 if qos == 0 else settled > left
    assert {row[4] for row in got} == {"0"}
    assert [r[2] for r in records(launcher.directory, "C") if r[1] == "s"] == [
        "connecting", "connected", "subscribed", "disconnected",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [1, 2])
def test_guarantees_hold_across_a_broker_restart(launcher: Launcher, qos: int, version: str) -> None:
    launcher.lab_up(["broker", "p", "s"])
    launcher.do("start", node="broker", software=broker(persistence=True))
    items = [
        client("p", version, publish(qos, 100, 3.0), clean=False),
        client("s", version, sub=qos, clean=False),
    ]
    run(launcher, items, 1.0)
    stopped = launcher.do(
        "stop", node="broker", software="mosquitto", signal="SIGTERM", timeout_ns=5 * SECOND
    )
    assert stopped["status"] == 0
    time.sleep(0.5)
    launcher.do("start", node="broker", software=broker(persistence=True))
    time.sleep(1.8)
    drain(launcher)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    lives = records(launcher.directory, "C")
    assert len(sent) == 270
    assert [row for row in sent if row[8] != "settled"] == [], lives
    arrived = [row[2] for row in got]
    assert set(arrived) == {row[2] for row in sent}
    assert qos == 1 or len(arrived) == len(set(arrived))
    what = [r[2] for r in records(launcher.directory, "C") if r[1] == "p"]
    assert what.count("connected") == 2 and "disconnected" in what, lives


def test_a_full_queue_drops_and_says_so(launcher: Launcher) -> None:
    launcher.lab_up(["broker", "p"])
    pub = publish(1, 100, 1.0)
    pub["publish"]["queue"] = 10
    run(launcher, [client("p", pub=pub)], 1.2)  # no broker is running
    drain(launcher, 0)
    outcomes = [row[8] for row in records(launcher.directory, "S")]
    assert outcomes.count("dropped") == 60 and outcomes.count("unsent") == 10
    assert {r[2] for r in records(launcher.directory, "C")} == {"connecting", "failed"}


def test_a_client_that_connects_late_schedules_nothing_before(launcher: Launcher) -> None:
    launcher.lab_up(["broker", "p"])
    launcher.do("start", node="broker", software=broker())
    run(launcher, [client("p", pub=publish(0, 100, 1.5), connect_s=1.0)], 1.7)
    drain(launcher)
    assert len(records(launcher.directory, "S")) == 50


def test_refusals_name_value_and_rule(launcher: Launcher) -> None:
    launcher.lab_up(["p"])
    pub = publish(0, 1, 1)
    pub["flow"]["payload"]["bytes"] = 10
    answer = launcher.ask("workload", items=[client("p", pub=pub)])
    assert not answer["ok"] and "flow 0: payload.bytes: 10" in answer["error"]
    answer = launcher.ask("workload", items=[client("p", version="4")])
    assert not answer["ok"] and 'version: "4"' in answer["error"]
    unknown = client("p")
    unknown["software"]["kind"] = "carrier-pigeon"
    answer = launcher.ask("workload", items=[unknown])
    assert not answer["ok"] and 'kind: "carrier-pigeon"' in answer["error"]
