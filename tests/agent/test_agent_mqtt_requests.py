"""Tests the agent's MQTT clients against a real mosquitto: requests with correlation data, subscription
identifiers, payloads of different lengths, and many sessions in one agent.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import Any

import pytest
from agent_launcher import Launcher
from test_agent_mqtt import broker, drain, records, run

from contract.plan import Plan
from orchestrator.lab.workload import items
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

pytestmark = pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")

FILE = """\
name: requests
segments: {lan: {subnet: 10.77.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  a:
    segment: lan
    software:
      r:
        mqtt:
          broker: broker
          version: 5
          subscribe: [{topic: "ask/#", qos: QOS, identifier: 1}, {topic: "ask/+", qos: QOS, identifier: 2}]
  z: {segment: lan, software: {r: {mqtt: {broker: broker, version: 5, subscribe: [{topic: "#", qos: QOS}]}}}}
  p:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: 5
          publish: {topic: ask/1, qos: QOS, rate: 50 /s, settle: 0.3 s, reply: 100 B, MORE}
run: {hold: 1 s}
"""
MANY = """\
name: many
segments: {lan: {subnet: 10.77.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  s:
    segment: lan
    software: {r: {mqtt: {broker: broker, clean_session: false, subscribe: [{topic: "m/#", qos: 1}]}}}
  g:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          clean_session: false
          reconnect: 300 ms
          sessions: 400
          publish: {topic: "m/{session}", qos: 1, rate: 2 /s, rate_of: client, settle: 0.5 s}
run: {connect_interval: 0 s, hold: 5 s}
"""


def planned(text: str) -> Plan:
    return make_plan(parse("real.yaml", text.encode()))


def up(launcher: Launcher, plan: Plan) -> list[dict[str, Any]]:
    launcher.lab_up([node.name for node in plan.nodes])
    launcher.do("start", node="broker", software=broker(persistence=True))
    return [dict(item) for item in items(plan)]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_requests_are_settled_by_all_their_replies(launcher: Launcher, qos: int) -> None:
    more = "payload: bytes, payload_sizes: {min: 50 B, max: 2 kB, mean: 300 B}"
    plan = planned(FILE.replace("QOS", str(qos)).replace("MORE", more))
    run(launcher, up(launcher, plan), 2.0)
    drain(launcher)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    assert len(sent) > 20 and {row[8] for row in sent} == {"settled"}
    lengths = [int(row[3]) for row in sent]
    assert 50 <= min(lengths) < 150 and 300 < max(lengths) <= 2000 and len(set(lengths)) > 15, lengths
    replies = {(row[2], row[3]) for row in got if row[4] == "1"}
    assert replies == {(row[2], name) for row in sent for name in "az"}, "of both receivers, to each request"
    for row in sent:
        # mosquitto may deliver a message by each of two overlapping subscriptions, so a reply may come twice.
        first = [next(int(r[5]) for r in got if r[2:5] == [row[2], name, "1"]) for name in "az"]
        assert int(row[6]) >= max(first)
    assert not [row for row in records(launcher.directory, "C") if row[2] in ("misidentified", "failed")]


def test_a_request_that_one_receiver_does_not_answer_stays_unsettled(launcher: Launcher) -> None:
    plan = planned(FILE.replace("QOS", "1").replace("MORE", "payload: bytes"))
    found = up(launcher, plan)
    old = next(item for item in found if item["node"] == "z")
    old["software"]["spec"]["version"] = "3.1.1"
    run(launcher, found, 2.0)
    launcher.do("finish")
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    assert len(sent) > 20 and {row[8] for row in sent} == {"unsettled"}
    assert {row[3] for row in got if row[4] == "1"} == {"a"}


def test_many_sessions_survive_the_restart_of_their_broker(launcher: Launcher) -> None:
    plan = planned(MANY)
    found = up(launcher, plan)
    run(launcher, found, 2.0)
    launcher.do("stop", node="broker", software="mosquitto")
    time.sleep(0.3)
    launcher.do("start", node="broker", software=broker(persistence=True))
    time.sleep(3.5)
    answer = drain(launcher)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    flows = Counter(row[1] for row in sent)
    assert len(flows) == 400 and sum(flows.values()) > 3000
    assert Counter(row[8] for row in sent).keys() == {"settled"}
    assert {(row[1], row[2]) for row in got} == {(row[1], row[2]) for row in sent}, "each arrived"
    said = Counter(row[2] for row in records(launcher.directory, "C") if row[1] != "s")
    assert said["connected"] == 800, said
    assert answer["totals"]["connected"] == 0 and answer["totals"]["clients"] == 401
    counted = [event for event in launcher.events if event.get("event") == "clients"]
    assert max(event["connected"] for event in counted) == 401
