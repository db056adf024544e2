"""Tests requests of MQTT 5, subscription identifiers and payloads of different lengths in the plan, and
mistakes in them.
"""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import refused

from contract.plan import Payload, Plan, Sizes
from orchestrator.plan.build import make_plan
from orchestrator.software.mqtt.sizes import _mean, _scale
from orchestrator.topology.loading import parse

FILE = """\
name: requests
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {b: {broker: mosquitto}}}
  old: {segment: lan, software: {r: {mqtt: {broker: server, subscribe: [{topic: m, qos: 2}]}}}}
  new:
    segment: lan
    software: {r: {mqtt: {broker: server, version: 5, subscribe: [{topic: m, qos: 2, identifier: 4}]}}}
  meter:
    segment: lan
    software: {m: {mqtt: {broker: server, version: 5, publish: {topic: m, qos: 1, rate: 1 /s, reply: 200 B}}}}
run: {hold: 10 s}
"""
METER, NEW = "nodes.meter.software.m.mqtt", "nodes.new.software.r.mqtt"


def planned(old: str = "", new: str = "") -> Plan:
    return make_plan(parse("r.yaml", FILE.replace(old, new, 1).encode()))


def spec(plan: Plan, node: int = 3) -> Any:
    return plan.nodes[node].software[0].spec


def test_a_request_has_a_response_topic_and_all_receivers() -> None:
    plan = planned()
    (flow,) = plan.flows
    assert (flow.pattern, flow.reply) == ("request", Payload("bytes", 200))
    assert spec(plan)["publish"]["request"] == {"response_topic": "answers/meter", "receivers": 2}
    own = planned("reply: 200 B", 'reply: 200 B, response_topic: "to/{node}/{index}"')
    assert spec(own)["publish"]["request"]["response_topic"] == "to/meter/1"
    assert spec(plan, 2)["subscribe"] == [{"topic": "m", "qos": 2, "identifier": 4}]
    assert "identifier" not in spec(plan, 1)["subscribe"][0]


def test_who_cannot_reply_is_named() -> None:
    (note,) = [note for note in planned().notes if "unanswered" in note.text]
    assert "old: MQTT 3.1.1 has no response topic" in note.text
    nobody = planned("topic: m, qos: 1", "topic: n, qos: 1")
    assert [note for note in nobody.notes if "nobody subscribes to n" in note.text]


def test_a_message_without_reply_is_no_request() -> None:
    plan = planned(", reply: 200 B", "")
    assert (plan.flows[0].pattern, plan.flows[0].reply) == ("publish", None)
    assert "request" not in spec(plan)["publish"]


def test_lengths_are_in_the_plan_with_their_mean() -> None:
    even = planned("reply: 200 B", "payload: bytes, payload_sizes: {min: 100 B, max: 301 B}").flows[0].payload
    assert even.sizes is not None
    assert even == Payload("bytes", 200, Sizes(100, 301, even.sizes.seed)) and even.bounds == (100, 301)
    long = planned("reply: 200 B", "payload_sizes: {min: 600 B, max: 2 kB, mean: 900 B}").flows[0].payload
    assert long.sizes is not None and long.sizes.scale is not None
    assert (long.kind, long.bytes) == ("metering-xml", 900)
    assert _mean(long.sizes.scale, 1400) == pytest.approx(300)


@pytest.mark.parametrize("mean", [1, 10, 499, 499.99])
def test_the_scale_gives_the_mean(mean: float) -> None:
    assert _mean(_scale(mean, 1000), 1000) == pytest.approx(mean, rel=1e-6)


SIZES = "payload: bytes, payload_sizes: {min: 100 B, max: 300 B}"


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("reply: 200 B", "reply: 27 B", "publish.reply", "from 28 to"),
        ("reply: 200 B", "response_topic: a", "publish.response_topic", "is a key of requests"),
        ("reply: 200 B", 'reply: 200 B, response_topic: "a/#"', "publish.response_topic", "no wildcards"),
        ("version: 5, publish", "publish", "publish.reply", "MQTT 3.1.1 has no response topic"),
        ("version: 5, subscribe", "subscribe", "subscribe[0].identifier", "no subscription id"),
        ("identifier: 4", "identifier: 268435456", "subscribe[0].identifier", "268435455"),
        ("reply: 200 B", f"{SIZES}, payload_size: 200 B", "publish.payload_sizes", "`payload_size`"),
        ("reply: 200 B", f"json: '1', {SIZES[16:]}", "publish.payload_sizes", "`json`"),
        ("reply: 200 B", SIZES.replace("100 B", "20 B"), "publish.payload_sizes.min", "from 28 to"),
        ("reply: 200 B", SIZES.replace("100 B", "400 B"), "publish.payload_sizes.min", "`min` first"),
        ("reply: 200 B", f"{SIZES[:-1]}, mean: 200 B}}", "publish.payload_sizes.mean", "the middle"),
        ("reply: 200 B", SIZES.replace("payload: bytes, ", ""), "publish.payload_sizes.min", "from 548 to"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    where = NEW if place.startswith("subscribe") else METER
    refused(FILE, old, new, f"{where}.{place}", rule)
