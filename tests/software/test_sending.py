"""Tests the keys that all senders have (rates over time, arrivals, bursts, deadlines, classes) and mistakes
in them.
"""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Flow, Plan, Rate
from orchestrator.plan.build import make_plan
from orchestrator.software.sending import expected_messages
from orchestrator.topology.loading import parse

PUBLISH = "rate: 10 /s"
FILE = """\
name: sending
segments: {near: {subnet: 10.1.0.0/24}, far: {}}
nodes:
  server: {segment: far, software: {b: {broker: mosquitto}}}
groups:
  client:
    count: 4
    segment: near
    software:
      c:
        mqtt:
          broker: server
          subscribe: [{topic: "m/{next}"}]
          publish: {topic: "m/{index}", rate: 10 /s}
links: {way: {between: [near, far], both: {delay: 10 ms}}}
run: {hold: 20 s, connect_interval: 500 ms}
"""
PLACE = "groups.client.software.c.mqtt.publish"


def planned(new: str) -> Plan:
    return make_plan(parse("sending.yaml", FILE.replace(PUBLISH, new).encode()))


def first(new: str) -> Flow:
    return planned(new).flows[0]


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        ("10 /s", (Rate(0, 10.0),)),
        (
            "[{from: 0 s, rate: 20 /s}, {from: hold + 4 s, rate: 40 /s}]",
            (Rate(0, 20.0), Rate(6 * 10**9, 40.0)),
        ),
        ("[{from: 0 s, 20 /s}, {from: hold + 4 s, 0 /s}]", (Rate(0, 20.0), Rate(6 * 10**9, 0.0))),
        ("[{from: hold, 20 /s}]", (Rate(0, 0.0), Rate(2 * 10**9, 20.0))),
    ],
)
def test_a_rate_may_change_in_time(rate: str, wanted: tuple[Rate, ...]) -> None:
    schedule = first(f"rate: {rate}").schedule
    assert schedule is not None and schedule.rates == wanted


def test_messages_are_reckoned_over_all_rates_and_bursts() -> None:
    # The receiver connects at 1.5 s, and the hold ends at 22 s: 3 s at 20 /s and 16 s at 5 /s.
    flow = first(
        "rate: [{from: 0 s, 20 /s}, {from: hold + 4 s, 5 /s}], rate_of: client, settle: 1500 ms, burst: 2"
    )
    assert flow.start_ns == 3 * 10**9
    assert expected_messages(flow) == pytest.approx(2 * (3 * 20 + 16 * 5))


def test_what_belongs_together_has_a_class() -> None:
    assert {flow.traffic_class for flow in planned("rate: 1 /s").flows} == {"client.c"}
    assert {flow.traffic_class for flow in planned("rate: 1 /s, class: control").flows} == {"control"}


def test_all_together_is_each_one_of_its_own() -> None:
    schedules = [
        flow.schedule for flow in planned("rate: 80 /h, rate_of: client, arrivals: together, burst: 5").flows
    ]
    assert {(s.kind, s.arrivals, s.burst) for s in schedules if s} == {("own", "together", 5)}


def test_a_deadline_shorter_than_the_way_is_noted_once_with_both_figures() -> None:
    # A message passes the link twice, because the broker is behind it.
    (note,) = planned("rate: 10 /s, deadline: 15 ms").notes
    assert note.place == "class client.c"
    assert "deadline of 15 ms" in note.text and "takes 20 ms" in note.text
    assert planned("rate: 10 /s, deadline: 20 ms").notes == ()


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("rate: 0 /s", "rate", "must be more than zero"),
        ("rate: [{from: 0 s, 0 /s}, {from: hold, 0 /s}]", "rate", "must be more than zero"),
        ("rate: []", "rate", "at least 1 items"),
        ("rate: 10", "rate", 'has no unit; write "10 /s"'),
        ("rate: [{from: 0 s}]", "rate[0].rate", "is missing"),
        ("rate: [{rate: 1 /s}]", "rate[0].from", "is missing"),
        ("rate: [{from: later, rate: 1 /s}]", "rate[0].from", "a moment is a phase"),
        ("rate: [{from: 5 s, 1 /s}, {from: 5 s, 2 /s}]", "rate[1].from", "goes back in time"),
        (
            "rate: [{from: hold + 5 s, 1 /s}, {from: 1 s, 2 /s}]",
            "rate[1].from",
            "goes back in time: the step",
        ),
        (
            "rate: [{from: hold + 21 s, 1 /s}]",
            "rate[0].from",
            "after the end of the load, which ends with the hold, 22 s",
        ),
        ("rate: [{from: drain, 1 /s}]", "rate[0].from", "is after the end of the load"),
        ("rate: 1 /s, deadline: 0 s", "deadline", "is not above zero"),
        ("rate: 1 /s, burst: 0", "burst", "at least 1"),
        ("rate: 1 /s, arrivals: together", "arrivals", "a rate of their own each; write `rate_of: client`"),
        ("rate: 1 /s, arrivals: never", "arrivals", "not one of the values"),
        ("rate: 1 /s, class: A B", "class", "does not match"),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, PUBLISH, new, f"{PLACE}.{place}", rule)
