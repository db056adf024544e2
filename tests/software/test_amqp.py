"""Tests AMQP in the plan: the queue of each message, its receivers and guarantee, and mistakes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistakes import problems, refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.amqp.routing import matches
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

KEYS = 'exchange: meters, keys: ["meter.#"]}'
CONSUME = f"consume: {{{KEYS}"
PUBLISH = 'publish: {exchange: meters, key: "meter.{index}", rate: 10 /s, rate_of: client}'
FILE = f"""\
name: amqp
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server: {{segment: lan, software: {{rabbit: {{broker: rabbitmq}}}}}}
  reader: {{segment: lan, software: {{r: {{amqp: {{broker: server, heartbeat: 5 s, {CONSUME}}}}}}}}}
  other: {{segment: lan, software: {{r: {{amqp: {{broker: server, consume: {{queue: q}}}}}}}}}}
groups:
  meter: {{count: 2, segment: lan, software: {{p: {{amqp: {{broker: server, {PUBLISH}}}}}}}}}
run: {{hold: 10 s}}
"""
READER = "nodes.reader.software.r.amqp"
EATS, SAYS = f"{READER}.consume", "groups.meter.software.p.amqp.publish"


def planned(*changes: tuple[str, str]) -> Plan:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return make_plan(parse("amqp.yaml", text.encode()))


def owed(plan: Plan, flow: int = 0) -> dict[tuple[str, ...], tuple[str, bool, bool, bool]]:
    guarantees = {plan.receivers[d.receivers]: d.guarantee for d in plan.flows[flow].deliveries}
    return {who: (p.name, p.lossless, p.single, p.while_session) for who, p in guarantees.items()}


def test_a_topic_reaches_the_queues_bound_to_it_and_the_agent_is_told() -> None:
    plan = planned()
    assert [flow.topic for flow in plan.flows] == ["meter.1", "meter.2"]
    assert owed(plan) == {("reader",): ("confirmed, acknowledged", True, False, True)}
    reader, meter = plan.nodes[1].software[0], plan.nodes[3].software[0]
    exchange = {"name": "meters", "type": "topic", "durable": True}
    assert reader.spec["consume"] == {
        "exchange": exchange, "keys": ["meter.#"], "queue": "", "durable": True, "prefetch": 100,
        "acknowledge": True,
    }  # fmt: skip
    assert meter.spec["publish"] == {
        "exchange": exchange, "key": "meter.1", "persistent": True, "confirms": True, "inflight": 1000,
        "queue": 1000,
    }  # fmt: skip
    assert (reader.spec["broker"], reader.spec["port"], reader.spec["heartbeat_s"]) == ("10.1.0.1", 5672, 5)
    assert reader.session is not None and reader.session.patience_ns == 10 * 10**9
    assert reader.ports == {"amqp": (5672,)}


@pytest.mark.parametrize(
    ("consume", "publish", "wanted"),
    [
        ("queue: kept, ", "", ("confirmed, acknowledged, kept", True, False, False)),
        ("queue: kept, ", "persistent: false, ", ("confirmed, acknowledged", True, False, True)),
        ("queue: lost, durable: false, ", "durable: false, ", ("confirmed, acknowledged", True, False, True)),
        ("acknowledge: false, ", "", ("confirmed, automatic", True, False, True)),
        ("", "confirms: false, ", ("unconfirmed, acknowledged", False, False, True)),
        ("acknowledge: false, ", "confirms: false, ", ("unconfirmed, automatic", False, True, True)),
    ],
)
def test_what_is_guaranteed(consume: str, publish: str, wanted: tuple[str, bool, bool, bool]) -> None:
    plan = planned(("consume: {ex", f"consume: {{{consume}ex"), ("publish: {ex", f"publish: {{{publish}ex"))
    assert owed(plan) == {("reader",): wanted}


def test_the_default_exchange_takes_the_queues_name() -> None:
    plan = planned(('publish: {exchange: meters, key: "meter.{index}"', 'publish: {exchange: "", key: q'))
    assert owed(plan) == {("other",): ("confirmed, acknowledged, kept", True, False, False)}
    assert plan.flows[0].deliveries[0].receivers == "queue q at server"


def test_consumers_of_one_queue_share_it_and_that_is_said() -> None:
    plan = planned((CONSUME, CONSUME.replace("consume: {", "consume: {queue: q, ")))
    assert plan.flows[0].deliveries == ()
    assert {note.place for note in plan.notes} == {"nodes.reader.r", "nodes.other.r"}
    assert all("shares the queue q" in note.text for note in plan.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PUBLISH, PUBLISH.replace("{ex", "{type: fanout, ex", 1)),
        (CONSUME, CONSUME.replace("{ex", "{durable: false, ex", 1)),
    ],
)
def test_a_thing_is_declared_in_one_way(old: str, new: str) -> None:
    with pytest.raises(TopologyError, match="declares the exchange meters as") as caught:
        planned((old, new))
    assert "write the same `type` and `durable` at both" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("broker: server, heartbeat", "broker: other, heartbeat", f"{READER}.broker", "that speaks amqp"),
        ("heartbeat: 5 s", "heartbeat: 1500 ms", f"{READER}.heartbeat", "whole seconds"),
        (CONSUME, "reconnect: 1 s", READER, "neither publishes nor consumes"),
        (CONSUME, f"consume: {{prefetch: 0, {KEYS}", f"{EATS}.prefetch", "at least 1"),
        (CONSUME, f"consume: {{prefetch: 5, acknowledge: false, {KEYS}", f"{EATS}.prefetch", "acknowledge"),
        (CONSUME, "consume: {exchange: meters}", f"{EATS}.keys", "gets nothing of a topic exchange"),
        (CONSUME, 'consume: {keys: ["#"], queue: x}', f"{EATS}.keys", "takes no bindings"),
        (CONSUME, "consume: {}", f"{EATS}", "nothing can come"),
        (CONSUME, "consume: {queue: amq.x}", f"{EATS}.queue", "the broker's own"),
        (CONSUME, 'consume: {exchange: amq.direct, keys: ["#"]}', f"{EATS}.exchange", "amq.topic (topic)"),
        (CONSUME, f"consume: {{queue: {'x' * 256}}}", f"{EATS}.queue", "at most 255 bytes"),
        (CONSUME, CONSUME.replace("meter.#", "{who}"), f"{EATS}.keys[0]", "no placeholder is called {who}"),
        (CONSUME, CONSUME.replace("keys", "qos: 1, keys"), f"{EATS}.qos", ""),
        ("meter.{index}", "meter.#", f"{SAYS}.key", "no wildcards"),
        ('exchange: meters, key: "meter.{index}"', 'exchange: ""', f"{SAYS}.key", "the name of a queue"),
        ("rate: 10 /s", "rate: 10 /s, payload_size: 27 B", f"{SAYS}.payload_size", "from 28 to"),
        ("rate: 10 /s", "rate: 10 /s, confirms: false, inflight: 5", f"{SAYS}.inflight", "confirms is off"),
        ("rate: 10 /s", "rate: 0 /s", f"{SAYS}.rate", "more than zero"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


def test_another_broker_does_not_speak_it() -> None:
    found = problems(FILE.replace("broker: rabbitmq", "broker: mosquitto"))
    assert len(found) == 3 and all("that speaks amqp" in problem for problem in found)


WORDS = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=6)
PIECES = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=6)


@given(PIECES, WORDS)
def test_topics_match_as_regular_expressions_say(pieces: list[str], words: list[str]) -> None:
    parts = {"*": "/[^/]*", "#": "(/[^/]*)*", "a": "/a", "b": "/b"}
    expected = re.fullmatch("".join(parts[piece] for piece in pieces), "".join(f"/{word}" for word in words))
    assert matches("topic", ".".join(pieces), ".".join(words)) == (expected is not None)


def test_other_exchanges_match_whole_keys_or_anything() -> None:
    assert matches("direct", "a.#", "a.#") and not matches("direct", "a.#", "a.b")
    assert matches("fanout", "", "anything")
