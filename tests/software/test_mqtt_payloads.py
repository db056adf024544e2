"""Tests payloads and options of MQTT 5 in the plan, and mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mistakes import refused

from contract.plan import Flow, Payload
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: payloads
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {b: {broker: mosquitto}}}
  reader: {segment: lan, software: {r: {mqtt: {broker: server, version: 5, subscribe: [{topic: m, qos: 2}]}}}}
  meter:
    segment: lan
    software: {m: {mqtt: {broker: server, version: 5, publish: {topic: m, qos: 1, rate: 1 /s}}}}
run: {hold: 10 s}
"""
METER, READER = "nodes.meter.software.m.mqtt", "nodes.reader.software.r.mqtt"


def planned(publish: str, directory: Path | None = None) -> tuple[Flow, Any]:
    text = FILE.replace("publish: {", f"publish: {{{publish}, " if publish else "publish: {")
    plan = make_plan(parse(str(directory / "p.yaml") if directory else "p.yaml", text.encode()))
    return plan.flows[0], plan.nodes[2].software[0].spec


@pytest.mark.parametrize("size", [0, 1, 27, 28, 1000])
def test_bytes_have_any_length(size: int) -> None:
    flow, spec = planned(f"payload: bytes, payload_size: {size} B")
    assert flow.payload == Payload("bytes", size)
    assert spec["publish"].get("content") == ("zeros" if size < 28 else None)


def test_a_json_text_is_as_long_as_its_longest_numbers() -> None:
    text = '{"meter": "{node}", "n": {seq}, "t": {time_ns}}'
    flow, spec = planned(f"json: '{text}'")
    assert spec["publish"]["content"] == {"template": text.replace("{node}", "meter")}
    longest = text.replace("{node}", "meter").replace("{seq}", "9" * 10).replace("{time_ns}", "9" * 19)
    assert flow.payload == Payload("json", len(longest))


def test_a_file_is_the_payload(tmp_path: Path) -> None:
    (tmp_path / "reading.xml").write_text("<reading>\u00fc</reading>")
    flow, spec = planned("file: reading.xml", tmp_path)
    assert flow.payload == Payload("file", 21)
    assert spec["publish"]["content"] == {"text": "<reading>\u00fc</reading>"}


def test_a_message_that_expires_may_be_lost() -> None:
    flow, spec = planned("message_expiry: 5 s, user_properties: {unit: kWh}")
    assert spec["publish"]["message_expiry_s"] == 5 and spec["publish"]["user_properties"] == [
        ["unit", "kWh"]
    ]
    (delivery,) = flow.deliveries
    assert (delivery.guarantee.name, delivery.guarantee.lossless) == ("QoS 1, expires", False)
    (delivery,) = planned("")[0].deliveries
    assert (delivery.guarantee.name, delivery.guarantee.lossless) == ("QoS 1", True)


def test_without_local_messages_a_client_is_owed_only_those_of_others() -> None:
    own = "subscribe: [{topic: m, no_local: true, retained: never}], publish: {"
    text = FILE.replace("publish: {", own)
    plan = make_plan(parse("p.yaml", text.encode()))
    assert [plan.receivers[d.receivers] for d in plan.flows[0].deliveries] == [("reader",)]
    options = {"topic": "m", "qos": 0, "no_local": True, "retain_handling": 2}
    assert plan.nodes[2].software[0].spec["subscribe"] == [options]


V5, TOPIC, FIRST = "version: 5, ", "topic: m, qos: 1", "subscribe: [{topic: m, qos: 2}]"


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (TOPIC, "topic: m, payload: bytes, payload_size: 2 MB", "publish.payload_size", "1048576"),
        (TOPIC, "topic: m, json: '{'", "publish.json", "is not JSON"),
        (TOPIC, "topic: m, json: '{\"of\": {node}}'", "publish.json", "is not JSON"),
        (TOPIC, "topic: m, json: '[NaN, {seq}]'", "publish.json", "NaN is no number of JSON"),
        (TOPIC, "topic: m, json: '{\"of\": \"{nod}\"}'", "publish.json", "no placeholder is called {nod}"),
        (TOPIC, 'topic: m, user_properties: {a: "b\\0"}', "publish.user_properties.a", "no control char"),
        (TOPIC, "topic: m, json: '{}', payload: bytes", "publish.payload", "conflicts with `json`"),
        (TOPIC, "topic: m, file: no.xml", "publish.file", "cannot be read"),
        (TOPIC, "topic: m, message_expiry: 1 ms", "publish.message_expiry", "whole seconds"),
        (V5 + "publish: {", "publish: {payload: bytes, payload_size: 27 B, ", "publish.payload_size",
         "MQTT 3.1.1 has no user property for it"),
        (V5 + "publish: {", "publish: {user_properties: {a: b}, ", "publish.user_properties", "3.1.1"),
        (V5 + "publish: {", "receive_maximum: 2, publish: {", "receive_maximum", "3.1.1"),
        (V5 + FIRST, "subscribe: [{topic: m, no_local: true}]", "subscribe[0].no_local", "3.1.1"),
        (V5 + FIRST, "subscribe: [{topic: m, retained: new}]", "subscribe[0].retained", "3.1.1"),
        (FIRST, "subscribe: [{topic: $share/g/m, no_local: true}]", "subscribe[0].no_local", "3.8.3.1"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    where = READER if place.startswith("subscribe") else METER
    refused(FILE, old, new, f"{where}.{place}", rule)
