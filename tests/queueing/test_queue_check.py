"""Tests that each mistake in queues is refused at its place, with the rule and the remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.plan import Discipline
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.plan.render import render
from orchestrator.topology.loading import parse

REST: dict[str, Any] = {"rest": {}}
CLASS = {"rate": "4 Mbit/s"}


def topology(**forward: Any) -> bytes:
    segments = {name: {"subnet": "10.1.0.0/24"} for name in ("a", "b")}
    link = {"between": ["a", "b"], "forward": {"rate": "10 Mbit/s", **forward}}
    nodes = {"one": {"segment": "a"}, "two": {"segment": "b"}}
    return json.dumps({"name": "q", "segments": segments, "nodes": nodes, "links": {"wan": link}}).encode()


def refused(**forward: Any) -> list[str]:
    with pytest.raises(TopologyError) as error:
        parse("q.yaml", topology(**forward))
    return [str(problem) for problem in error.value.problems]


MISTAKES = {
    "no kind": ({"queue": {}}, "names no kind of queue"),
    "two kinds": ({"queue": {"cake": {}, "fq_codel": {}}}, "names fq_codel and cake"),
    "no rate": ({"rate": None, "queue": {"cake": {}}}, "stands before no rate"),
    "two limits": ({"limit": 10, "queue": {"cake": {}}}, "which has limits of its own"),
    "unknown kind": ({"queue": {"pie": {}}}, "is not a key here"),
    "one band": ({"queue": {"prio": REST}}, "has 1 bands"),
    "many bands": (
        {"queue": {"prio": {**{f"b{i}": {"dscp": i} for i in range(16)}, **REST}}}, "has 17 bands"
    ),
    "no rest": ({"queue": {"prio": {"x": {"pcp": 1}, "y": {"pcp": 2}}}}, "nothing takes the rest"),
    "two rests": ({"queue": {"prio": {"x": {}, **REST}}}, "names no packets, as x does"),
    "same value": (
        {"queue": {"prio": {"x": {"pcp": 1}, "y": {"pcp": [1, 2]}, **REST}}}, "belongs to x already"
    ),
    "no such code point": ({"queue": {"prio": {"x": {"dscp": "HIGH"}, **REST}}}, "is no DSCP"),
    "no such priority": ({"queue": {"prio": {"x": {"pcp": 8}, **REST}}}, "must be at most 7"),
    "too much guaranteed": (
        {"queue": {"htb": {"x": {"dscp": "EF", "rate": "7 Mbit/s"}, "rest": CLASS}}}, "guarantees 11 Mbit/s"
    ),
    "nothing guaranteed": (
        {"queue": {"htb": {"x": {"dscp": "EF", "rate": "0 bit/s"}, "rest": CLASS}}}, "guarantees nothing"
    ),
    "ceiling below": (
        {"queue": {"htb": {"x": {"dscp": "EF", **CLASS, "ceil": "3 Mbit/s"}, "rest": CLASS}}},
        "below the guaranteed 4 Mbit/s",
    ),
    "ceiling above": (
        {"queue": {"htb": {"x": {"dscp": "EF", **CLASS, "ceil": "11 Mbit/s"}, "rest": CLASS}}},
        "above the whole rate",
    ),
    "red upside down": ({"queue": {"red": {"min": "30 kB", "max": "20 kB"}}}, "below max"),
    "red too short": ({"queue": {"red": {"min": "3 kB", "max": "20 kB", "limit": "10 kB"}}}, "above max"),
    "red never": (
        {"queue": {"red": {"min": "3 kB", "max": "9 kB", "probability": "0 %"}}}, "not between 0 and 1"
    ),
    "backpressure and a delay": ({"backpressure": True, "delay": "1 ms"}, "conflicts with delay"),
    "backpressure and a loss": ({"backpressure": True, "loss": "1 %"}, "conflicts with loss"),
    "codel": ({"queue": {"fq_codel": {"target": "200 ms"}}}, "not below the interval"),
}  # fmt: skip


def test_backpressure_needs_a_rate() -> None:
    text = topology(backpressure=True).replace(b'"rate": "10 Mbit/s", ', b"")
    with pytest.raises(TopologyError, match="needs a rate that packets wait for"):
        parse("q.yaml", text)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_its_rule(name: str) -> None:
    forward, rule = MISTAKES[name]
    wanted = {key: value for key, value in {"rate": "10 Mbit/s", **forward}.items() if value is not None}
    if "rate" not in wanted:
        wanted["rate"] = "0 bit/s"
    said = refused(**wanted)
    assert any(rule in line for line in said), said


def test_a_queue_in_the_timeline_is_checked_too() -> None:
    data = json.loads(topology())
    data["timeline"] = [
        {"at": "hold + 1 s", "impair": "wan", "forward": {"rate": "1 Mbit/s", "queue": {"prio": REST}}}
    ]
    with pytest.raises(TopologyError, match="has 1 bands"):
        parse("q.yaml", json.dumps(data).encode())


def test_what_is_left_out_is_filled_in() -> None:
    queue = {"htb": {"voice": {"dscp": ["EF", 34], "rate": "2 Mbit/s"}, "rest": CLASS}}
    plan = make_plan(parse("q.yaml", topology(queue=queue)))
    made = plan.links[0].forward.impairment.queue
    assert isinstance(made, Discipline) and made.kind == "htb"
    voice, rest = made.bands
    assert (voice.dscp, voice.rate_bps, voice.ceil_bps) == ((46, 34), 2_000_000, 10_000_000)
    assert (rest.rest, rest.limit_packets) == (True, 1000)
    assert "htb (voice: DSCP 46, 34, 2 Mbit/s to 10 Mbit/s; rest: 4 Mbit/s to 10 Mbit/s)" in render(plan)


def marked(dscp: object, queue: dict[str, Any] | None) -> bytes:
    data = json.loads(topology(**({"queue": queue} if queue else {})))
    data["nodes"]["one"]["software"] = {
        "say": {"udp": {"to": "two", "dscp": dscp, "push": {"size": "100 B", "rate": "1 /s"}}}
    }
    data["nodes"]["two"]["software"] = {"hear": {"udp": {"listen": 9000}}}
    return json.dumps(data).encode()


@pytest.mark.parametrize("queue", [None, {"prio": {"x": {"dscp": "AF41"}, **REST}}, {"fq_codel": {}}])
def test_a_priority_that_no_queue_serves_is_refused(queue: dict[str, Any] | None) -> None:
    with pytest.raises(TopologyError, match=r"nodes\.one\.software\.say\.udp\.dscp: 46: no queue"):
        parse("q.yaml", marked("EF", queue))


@pytest.mark.parametrize("queue", [{"prio": {"x": {"dscp": 46}, **REST}}, {"cake": {}}])
def test_one_that_a_queue_serves_is_planned(queue: dict[str, Any]) -> None:
    plan = make_plan(parse("q.yaml", marked("EF", queue)))
    assert next(n for n in plan.nodes if n.name == "one").software[0].spec["dscp"] == 46
