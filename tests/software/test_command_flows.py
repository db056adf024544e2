"""Tests programs that record their own messages: their flows, the information they get, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

GUARANTEE = "guarantee: {lossless: true, name: ours}"
READINGS = f"readings: {{to: [collector], size: 100 B, rate: 5 /s, deadline: 1 s, {GUARANTEE}}}"
FILE = f"""\
name: own
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  collector: {{segment: far, software: {{take: {{command: ./take, receives: true}}}}}}
  deaf: {{segment: far, software: {{sleep: {{command: [sleep, inf]}}}}}}
  stranger: {{segment: apart, software: {{take: {{command: ./take, receives: true}}}}}}
  two: {{segment: far, software: {{a: {{command: a, receives: true}}, b: {{command: b, receives: true}}}}}}
groups:
  meter:
    count: 2
    segment: near
    software:
      send:
        command: ./send
        start: hold
        receives: true
        flows:
          {READINGS}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "groups.meter.software.send.flows.readings"


def planned(new: str = READINGS) -> Plan:
    return make_plan(parse("own.yaml", FILE.replace(READINGS, new).encode()))


def test_a_program_owes_what_the_file_says() -> None:
    plan = planned()
    flow = plan.flows[0]
    assert (flow.name, flow.traffic_class, flow.sender) == ("meter1.send", "meter.send", "meter1")
    assert (flow.pattern, flow.payload.kind, flow.payload.bytes) == ("push", "own", 100)
    (delivery,) = flow.deliveries
    assert plan.receivers[delivery.receivers] == ("collector",)
    assert delivery.guarantee.lossless and not delivery.guarantee.single
    assert delivery.guarantee.rule == "ours: no message is lost"


def test_a_program_is_told_numbers_addresses_and_its_schedule() -> None:
    plan = planned()
    sender = next(node for node in plan.nodes if node.name == "meter2").software[0]
    told = sender.spec["accounts"]
    (sends,) = told["sends"]
    assert (told["endpoint"], told["t0_ns"], told["receives"]) == ("meter2", None, [])
    assert (sends["number"], sends["name"], sends["class"]) == (1, "meter2.send", "meter.send")
    assert sends["to"] == [{"endpoint": "collector", "address": "10.1.0.1"}]
    assert sends["schedule"]["rates"] == [{"from_ns": 0, "per_s": 5.0}] and sends["schedule"]["index"] == 1
    assert (sends["payload"]["bytes"], sends["deadline_ns"]) == (100, 10**9)
    assert sends["stop_ns"] == plan.ramp_ns + plan.hold_ns
    receives = plan.nodes[0].software[0].spec["accounts"]["receives"]
    assert [(one["number"], one["name"], one["sender"]) for one in receives] == [
        (0, "meter1.send", "meter1"),
        (1, "meter2.send", "meter2"),
    ]


def test_a_program_has_its_session_and_no_turn_in_the_ramp() -> None:
    plan = planned()
    found = {n.name: n.software[0] for n in plan.nodes}
    sender, taker, other = found["meter1"].session, found["collector"].session, found["deaf"]
    assert plan.ramp_ns == 0 and sender is not None and taker is not None
    assert (sender.listens, taker.listens, other.session, other.spec) == (False, True, None, {})
    assert plan.flows[0].start_ns == plan.ramp_ns + 10**9


def test_one_of_several_is_named_with_its_software() -> None:
    plan = planned(READINGS.replace("[collector]", "[collector, two/b]"))
    assert plan.receivers == {"collector, two/b by command": ("collector", "two-b")}


def test_nothing_is_promised_unless_said() -> None:
    guarantee = planned("readings: {to: collector, size: 1 B, rate: 1 /s}").flows[0].deliveries[0].guarantee
    assert guarantee.rule == "own: nothing is guaranteed"


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        (READINGS.replace("collector", "colector"), ".to", 'did you mean "collector"?'),
        (READINGS.replace("collector", "deaf"), ".to", "no command there receives, on node deaf"),
        (READINGS.replace("collector", "collector/tak"), ".to", "no software of collector is called tak"),
        (READINGS.replace("collector", "two"), ".to", "more than one command of two receives; write two/a"),
        (READINGS.replace("collector", "meter"), ".to", "a flow to itself"),
        (READINGS.replace("collector", "stranger"), ".to", "joins it to stranger"),
        (READINGS.replace("size: 100 B", "size: 9 B, reply: 9 B"), ".reply", "a reply without a request"),
        (READINGS.replace("size: 100 B", "size: 9 B, pattern: request"), "", "a request without a reply"),
        (READINGS.replace("100 B", "0 B"), ".size", "is nothing at all"),
        (READINGS.replace("5 /s", "0 /s"), ".rate", "must be more than zero"),
        (READINGS.replace("lossless", "lossles"), ".guarantee.lossles", 'did you mean "lossless"?'),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, READINGS, new, f"{PLACE}{place}", rule)
