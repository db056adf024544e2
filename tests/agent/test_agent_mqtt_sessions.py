"""Tests the agent's MQTT clients against a real mosquitto: TLS, login, payloads of any content."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import pytest
from agent_launcher import Launcher
from test_agent_mqtt import drain, records, run

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

pytestmark = pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")

FILE = """\
name: real
segments: {lan: {subnet: 10.77.0.0/24}}
nodes:
  broker:
    segment: lan
    software: {b: {broker: mosquitto, port: 8883, tls: {mutual: true}, users: {p: secret, s: secret}}}
  s:
    segment: lan
    software: {r: {mqtt: {broker: broker, LOGIN, user: s, subscribe: [{topic: "m/#", qos: 1}]}}}
  p:
    segment: lan
    software:
      m:
        mqtt:
          {broker: broker, LOGIN, user: p, publish: {topic: m/1, qos: 1, rate: 50 /s, settle: 0.3 s, PAYLOAD}}
run: {hold: 1 s}
"""
LOGIN = "version: 5, password: secret, tls: {mutual: true}"


def planned(payload: str, login: str = LOGIN) -> Plan:
    return make_plan(parse("real.yaml", FILE.replace("LOGIN", login).replace("PAYLOAD", payload).encode()))


def items(plan: Plan) -> list[dict[str, Any]]:
    flow = {**dataclasses.asdict(plan.flows[0]), "number": 0}
    return [
        {
            "node": node.name,
            "software": dataclasses.asdict(software),
            "flows": [flow] if node.name == "p" else [],
        }
        for node in plan.nodes
        for software in node.software
        if software.session is not None
    ]


@pytest.mark.parametrize("tls", ["", "tls: {mutual: true}, "])
def test_every_message_arrives_once_over_a_websocket(launcher: Launcher, tls: str) -> None:
    """Shows that each payload arrives once over a WebSocket, whose frames have lengths of 7 or of 16 bits."""
    text = FILE.replace("tls: {mutual: true}, ", f"websocket: true, {tls}")
    text = text.replace("LOGIN", f"version: 5, password: secret, websocket: true, {tls}".rstrip(", "))
    play(launcher, make_plan(parse("ws.yaml", text.replace("PAYLOAD", "payload_size: 717 B").encode())))
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    said = records(launcher.directory, "C")
    assert len(sent) > 20 and {row[8] for row in sent} == {"settled"}, said
    assert sorted(row[2] for row in got) == sorted(row[2] for row in sent)


def play(launcher: Launcher, plan: Plan, seconds: float = 2.0) -> None:
    launcher.lab_up(["broker", "s", "p"])
    launcher.do("start", node="broker", software=dataclasses.asdict(plan.nodes[0].software[0]))
    run(launcher, items(plan), seconds)
    drain(launcher)


@pytest.mark.parametrize(
    "payload", ["payload: bytes, payload_size: 0 B", "json: '{\"n\": {seq}}', retain: true"]
)
def test_every_message_arrives_once_over_tls(launcher: Launcher, payload: str) -> None:
    play(launcher, planned(payload))
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    said = records(launcher.directory, "C")
    assert len(sent) > 20 and {row[8] for row in sent} == {"settled"}, said
    assert sorted(row[2] for row in got) == sorted(row[2] for row in sent)
    handshakes = {row[1]: row[4] for row in said if row[2] == "tls"}
    assert handshakes.keys() == {"p", "s"} and all("TLSv1_3" in text for text in handshakes.values())


def test_a_wrong_password_is_told_in_words(launcher: Launcher) -> None:
    plan = planned("payload: bytes")
    for node in plan.nodes:
        for software in node.software:
            if "password" in software.spec:
                software.spec["password"] = "guess"
    play(launcher, plan, 1.0)
    said = [row for row in records(launcher.directory, "C") if row[2] == "failed"]
    assert said and all(row[4].startswith("refused: ") for row in said), said
    assert {row[8] for row in records(launcher.directory, "S")} == {"unsent"}


def test_a_retained_message_comes_to_a_later_subscriber_as_such(launcher: Launcher) -> None:
    plan = planned("retain: true")
    late = items(plan)
    late[0]["software"]["session"] |= {"connect_ns": int(1.5e9)}
    launcher.lab_up(["broker", "s", "p"])
    launcher.do("start", node="broker", software=dataclasses.asdict(plan.nodes[0].software[0]))
    run(launcher, late, 2.0)
    drain(launcher)
    assert [row[4] for row in records(launcher.directory, "C") if row[2] == "retained"] == ["m/1"]
    assert records(launcher.directory, "R") == []
