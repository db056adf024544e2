"""Tests MQTT clients in the plan that unsubscribe, that connect only for some time, or that each stand for
many sessions; and mistakes in their keys.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from mistakes import problems

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: changes
segments: {lan: {subnet: 10.1.0.0/16}}
nodes:
  server: {segment: lan, software: {b: {broker: mosquitto}}}
  reader: {segment: lan, software: {r: {mqtt: {broker: server, subscribe: [{topic: "m/#", qos: 1READER}]}}}}
groups:
  gate:
    count: 2
    segment: lan
    software:
      m:
        mqtt:
          {broker: server, MORE publish: {topic: "m/{index}/{session}", qos: 1, rate: 2 /s, rate_of: client}}
run: {connect_interval: 10 ms, hold: 10 s}
"""


def text(reader: str = "", more: str = "") -> bytes:
    return FILE.replace("READER", reader).replace("MORE", more).encode()


def planned(reader: str = "", more: str = "") -> Plan:
    return make_plan(parse("c.yaml", text(reader, more)))


def specs(plan: Plan) -> list[dict[str, Any]]:
    return [s.spec for n in plan.nodes for s in n.software if s.kind == "mqtt"]


def test_without_these_keys_the_plan_is_as_before() -> None:
    keys = {"lives", "unsubscribed_ns"}
    for spec in specs(planned()):
        assert not keys & spec.keys() and all(not keys & one.keys() for one in spec["subscribe"])


def test_times_without_a_subscription_are_offsets_from_the_start() -> None:
    plan = planned(", unsubscribed: [{from: hold + 2 s, for: 3 s}, {from: hold + 6 s}]")
    (spec,) = (spec for spec in specs(plan) if spec["subscribe"])
    begin = plan.ramp_ns + 2 * 10**9
    assert spec["subscribe"][0]["unsubscribed_ns"] == [
        [begin, begin + 3 * 10**9],
        [begin + 4 * 10**9, 2**63 - 1],
    ]


def test_churn_is_each_clients_own_by_the_seed() -> None:
    plan = planned(more="churn: {mean: 20 s, away: 2 s, abrupt: 25 %},")
    lives = [spec["lives"] for spec in specs(plan) if spec["publish"]]
    assert all(one["mean_ns"] == 20 * 10**9 and one["drawn"] and one["abrupt"] == 0.25 for one in lives)
    assert len({one["seed"] for one in lives}) == 2


def test_sessions_are_clients_with_names_flows_and_turns_of_their_own() -> None:
    plan = planned(more="sessions: 50, client_id: '{node}.{session}',")
    clients = [s for n in plan.nodes for s in n.software if s.kind == "mqtt" and s.spec["publish"]]
    names = [s.session.endpoint for s in clients if s.session]
    assert len(names) == len(set(names)) == 100 and "gate2-m-50" in names
    assert len({s.spec["client_id"] for s in clients}) == 100
    assert {flow.topic for flow in plan.flows} == {f"m/{g}/{n}" for g in (1, 2) for n in range(1, 51)}
    assert {flow.traffic_class for flow in plan.flows} == {"gate.m"}
    assert len({flow.schedule.seed for flow in plan.flows if flow.schedule}) == 100
    connects = sorted(s.session.connect_ns for s in clients if s.session)
    assert [b - a for a, b in pairwise(connects)] == [10**7] * 99
    assert plan.ramp_ns == 101 * 10**7
    assert all(plan.receivers[d.receivers] == ("reader",) for flow in plan.flows for d in flow.deliveries)


@pytest.mark.parametrize(
    ("reader", "more", "rule"),
    [
        (", unsubscribed: [{from: hold + 5 s, for: 3 s}, {from: hold + 6 s}]", "", "has ended"),
        (", unsubscribed: [{from: hold + 5 s}, {from: hold + 6 s, for: 1 s}]", "", "has ended"),
        (", unsubscribed: [{from: hold + 5 s, for: 0 s}]", "", "is no time"),
        ("}, {topic: x, unsubscribed: [{from: hold + 1 s}]", "", "one subscription"),
        ("", "churn: {mean: 0 s},", "longer than no time"),
        ("", "sessions: 0,", "sessions"),
        ("", "client_id: '{sesion}',", "placeholder"),
    ],
)
def test_mistakes_are_refused_with_their_rule(reader: str, more: str, rule: str) -> None:
    assert any(rule in str(one) for one in problems(text(reader, more).decode())), rule


def test_many_sessions_have_a_rate_of_their_own() -> None:
    shared = text(more="sessions: 9,").decode().replace(", rate_of: client", "")
    assert any("rate_of: client" in str(one) for one in problems(shared))
