"""Tests edge nodes of Sparkplug B in the plan, and mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import refused

from contract.plan import Payload, Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: edge
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  host:
    segment: lan
    software: {h: {mqtt: {broker: broker, subscribe: [{topic: "spBv1.0/plant/#", qos: 1}]}}}
  pump:
    segment: lan
    software:
      m: {mqtt: {broker: broker, publish: {sparkplug: {group_id: plant, metrics: 3}, rate: 1 /s}}}
run: {hold: 10 s}
"""
SPARKPLUG, PUMP = "sparkplug: {group_id: plant, metrics: 3}", "nodes.pump.software.m.mqtt"


def planned(old: str = "", new: str = "") -> Plan:
    return make_plan(parse("e.yaml", FILE.replace(old, new, 1).encode()))


def spec(plan: Plan) -> Any:
    return plan.nodes[2].software[0].spec["publish"]


def test_an_edge_node_has_topics_payload_and_receivers() -> None:
    plan = planned()
    (flow,) = plan.flows
    assert (flow.topic, flow.payload) == ("spBv1.0/plant/NDATA/pump", Payload("sparkplug", 40 + 3 * 31))
    assert spec(plan)["topic"] == "spBv1.0/plant/NDATA/pump" and spec(plan)["qos"] == 0
    topics = {"birth": "spBv1.0/plant/NBIRTH/pump", "death": "spBv1.0/plant/NDEATH/pump"}
    assert spec(plan)["sparkplug"] == {**topics, "metrics": 3}
    assert [plan.receivers[one.receivers] for one in flow.deliveries] == [("host",)]


def test_the_names_have_placeholders() -> None:
    named = planned(SPARKPLUG, 'sparkplug: {group_id: "{group}", edge_node: "{node}-{index}"}')
    assert named.flows[0].topic == "spBv1.0/pump/NDATA/pump-1"
    assert named.flows[0].payload.bytes == 40 + 10 * 31


def test_other_publishers_have_no_such_setting() -> None:
    assert "sparkplug" not in spec(planned(SPARKPLUG, "topic: m"))


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (SPARKPLUG, f"topic: m, {SPARKPLUG}", "publish", "beside `sparkplug`"),
        (f"{SPARKPLUG}, ", "", "publish", "has no topic"),
        ("rate: 1 /s", "qos: 1, rate: 1 /s", "publish.qos", "QoS 0"),
        ("rate: 1 /s", "retain: true, rate: 1 /s", "publish.retain", "not retained"),
        ("rate: 1 /s", "payload: bytes, rate: 1 /s", "publish.payload", "another payload"),
        ("rate: 1 /s", "json: '1', rate: 1 /s", "publish.json", "another payload"),
        ("group_id: plant", "group_id: a/b", "publish.sparkplug.group_id", "one level"),
        ("metrics: 3", "metrics: 3, edge_node: 'a+'", "publish.sparkplug.edge_node", "one level"),
        ("metrics: 3", "metrics: 1001", "publish.sparkplug.metrics", "1000"),
        ("metrics: 3", "metrics: 0", "publish.sparkplug.metrics", "1"),
        ("publish", "will: {topic: gone}, publish", "will", "NDEATH"),
        ("publish", "clean_session: false, publish", "clean_session", "clean sessions"),
        ("publish", "version: 5, session_expiry: 9 s, publish", "session_expiry", "clean sessions"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, f"{PUMP}.{place}", rule)
