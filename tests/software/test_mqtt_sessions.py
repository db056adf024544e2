"""Tests the session of an MQTT client in the plan: login, will, session expiry, back-off, and mistakes in
them.
"""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import problems, refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

CLIENT = "client_id: 'c-{index}', user: '{node}', password: secret"
FILE = f"""\
name: sessions
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server:
    segment: lan
    software: {{b: {{broker: mosquitto, users: {{meter1: secret, meter2: secret}}}}}}
  reader:
    segment: lan
    software: {{b: {{broker: mosquitto}}, r: {{mqtt: {{broker: reader, subscribe: [{{topic: "#"}}]}}}}}}
groups:
  meter:
    count: 2
    segment: lan
    software:
      m:
        mqtt: {{broker: server, version: 5, {CLIENT}, publish: {{topic: "m/{{index}}", rate: 1 /s}}}}
run: {{hold: 10 s}}
"""
PLACE = "groups.meter.software.m.mqtt"
LOGIN = "version: 5, user: meter1, password: secret"


def planned(**more: str) -> Plan:
    text = FILE
    for old, new in more.items():
        assert old in text
        text = text.replace(old, new)
    return make_plan(parse("s.yaml", text.encode()))


def specs(plan: Plan) -> dict[str, dict[str, Any]]:
    return {n.name: s.spec for n in plan.nodes for s in n.software if s.kind == "mqtt"}


def test_login_and_client_id_are_each_clients_own() -> None:
    found = specs(planned())
    assert found["meter2"].items() >= {
        "client_id": "c-2", "user": "meter2", "password": "secret"
    }.items()  # fmt: skip
    assert not {"client_id", "user", "will", "backoff", "session_expiry_s"} & found["reader"].keys()


def test_a_will_goes_to_the_client_and_its_topic_to_those_who_may_get_it() -> None:
    will = "will: {topic: 'state/{index}', payload: gone, qos: 1, retain: true, delay: 5 s}, publish"
    both = {
        "publish": will,
        "broker: reader, subscribe": f"broker: server, {LOGIN}, subscribe",
    }
    found = specs(planned(**both))
    assert found["meter1"]["will"] == {
        "topic": "state/1", "payload": "gone", "qos": 1, "retain": True, "delay_s": 5
    }  # fmt: skip
    assert found["reader"]["wills"] == ["state/1", "state/2"]
    assert "wills" not in specs(planned(publish=will))["reader"], "it listens to another broker"


def test_a_session_that_expires_guarantees_only_while_it_lasts() -> None:
    for keys, expiry_s, while_session in (
        ("", None, True),
        ("clean_session: false, ", None, False),
        ("session_expiry: 60 s, ", 60, True),
        ("clean_session: false, session_expiry: 60 s, ", 60, True),
        ("session_expiry: 0 s, ", 0, True),
    ):
        reader = f"broker: server, {LOGIN}, {keys}subscribe: [{{topic: '#', qos: 1}}]"
        plan = planned(**{'broker: reader, subscribe: [{topic: "#"}]': reader})
        assert specs(plan)["reader"].get("session_expiry_s") == expiry_s
        assert {d.guarantee.while_session for flow in plan.flows for d in flow.deliveries} == {while_session}
        session = next(s.session for n in plan.nodes for s in n.software if s.name == "r")
        assert session is not None and (session.patience_ns is not None) == while_session


def test_each_client_has_a_back_off_of_its_own() -> None:
    found = specs(planned(publish="reconnect: 2 s, backoff: {limit: 30 s}, publish"))
    ours = [found[f"meter{index}"]["backoff"] for index in (1, 2)]
    assert ours[0].items() >= {"factor": 2.0, "limit_ns": 30 * 10**9, "jitter": 0.2}.items()
    assert ours[0]["seed"] != ours[1]["seed"] and found["meter1"]["reconnect_ns"] == 2 * 10**9


def test_clients_with_one_id_are_noted() -> None:
    (note,) = planned(**{"c-{index}": "same"}).notes
    assert note.place == "nodes.meter1.m" and "2 clients have the client id same at server" in note.text
    assert planned().notes == ()


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("publish", "will: {payload: gone}, publish", "will.topic", ""),
        ("publish", "will: {topic: 'a/#'}, publish", "will.topic", "no wildcards"),
        ("publish", "will: {topic: a, delay: 1500 ms}, publish", "will.delay", "whole seconds"),
        ("version: 5,", "will: {topic: a, delay: 1 s},", "will.delay", "MQTT 3.1.1 has no will delay"),
        ("version: 5,", "session_expiry: 1 s,", "session_expiry", "MQTT 3.1.1 has no session expiry"),
        ("publish", "clean_session: true, session_expiry: 60 s, publish", "session_expiry",
         "contradicts `clean_session: true`"),
        ("publish", "clean_session: false, session_expiry: 0 s, publish", "session_expiry",
         "contradicts `clean_session: false`"),
        ("publish", "session_expiry: 1 ms, publish", "session_expiry", "whole seconds"),
        ("version: 5,", 'subscribe: [{topic: "$share/g/a"}],', "subscribe[0].topic", "3.1.1 has no shared"),
        ("publish", 'subscribe: [{topic: "$share/a"}], publish', "subscribe[0].topic", "$share/GROUP/FILTER"),
        ("'c-{index}'", "'c-{number}'", "client_id", "no placeholder is called {number}"),
        ("user: '{node}'", "user: nobody", "user", "has no such user"),
        ("user: '{node}', ", "", "user", "admits only its `users`"),
        ("password: secret", "password: guess", "password", "is not the password of meter1"),
        ("publish", "reconnect: 0 s, backoff: {}, publish", "backoff", "never connects again"),
        ("publish", "reconnect: 9 s, backoff: {limit: 5 s}, publish", "backoff.limit", "below the first"),
        ("publish", "websocket: true, publish", "websocket", "speaks no WebSocket"),
        ("publish", "websocket: {path: a b}, publish", "websocket.path", "is no path of a URL"),
        ("publish", "backoff: {factor: 0.5}, publish", "backoff.factor", ""),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, f"{PLACE}.{place}", rule)


def test_a_topic_alias_needs_version_5() -> None:
    aliased = FILE.replace("rate: 1 /s", "topic_alias: true, rate: 1 /s")
    plan = make_plan(parse("s.yaml", aliased.encode()))
    assert specs(plan)["meter1"]["publish"]["topic_alias"]
    found = problems(aliased.replace("version: 5, ", ""))
    assert any(f"{PLACE}.publish.topic_alias: " in one and "no topic alias" in one for one in found)


def test_a_websocket_is_at_both_ends() -> None:
    both = {"{broker: mosquitto, users": "{broker: mosquitto, websocket: true, users"}
    plan = planned(publish="websocket: {path: /up}, publish", **both)
    assert specs(plan)["meter1"]["websocket"] == {"host": "server:1883", "path": "/up"}
    broker = next(node for node in plan.nodes if node.name == "server").software[0]
    assert broker.process is not None and broker.ports == {"http": (1883,)}
    assert any("listener 1883\nprotocol websockets\n" in file.content for file in broker.process.files)
    (problem,) = problems(FILE.replace("{broker: mosquitto, users", both["{broker: mosquitto, users"]))
    assert f"{PLACE}.websocket: the broker of server speaks WebSocket only" in problem


def test_a_password_needs_a_user_in_3_1_1() -> None:
    found = problems(FILE.replace("version: 5, ", "").replace("user: '{node}', ", ""))
    assert any(f"{PLACE}.password: " in one and "no password without a user" in one for one in found)
