"""Tests autoconfiguration in the plan: what a router advertises, the host's program, and mistakes."""

from __future__ import annotations

import pytest

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: slaac
segments:
  office: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  hall: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  wan: {subnet: "fd00:2::/64"}
  old: {subnet: 10.3.0.0/24}
nodes:
  gate:
    segment: [office, wan, old]
    forward: true
    software: {ra: {advertise: {segment: office, lifetime: 10 min, every: 1 min}}}
  far: {segment: wan}
groups:
  station: {count: 2, segment: hall, software: {own: {slaac: {}}}}
links: {line: {between: [office, hall], both: {delay: 1 ms}}}
run: {hold: 10 s}
"""


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("slaac.yaml", text.encode()))


def process_of(plan: Plan, node: str) -> Process:
    (software,) = next(one for one in plan.nodes if one.name == node).software
    assert software.process is not None
    return software.process


def refused(old: str, new: str) -> str:
    with pytest.raises(TopologyError) as refusal:
        planned(FILE.replace(old, new))
    return "\n".join(map(str, refusal.value.problems))


def test_the_router_advertises_the_segments_prefix_and_itself() -> None:
    (file,) = process_of(planned(), "gate").files
    lines = file.content.splitlines()
    assert "dhcp-range=fd00:1::,ra-only,64,600" in lines and "ra-param=eth0,60,600" in lines
    assert "interface=eth0" in lines and "port=0" in lines


def test_a_host_asks_for_the_planned_address_by_its_token() -> None:
    plan = planned()
    env = process_of(plan, "station2").env
    card = next(node.interfaces[0] for node in plan.nodes if node.name == "station2")
    assert card.second == "fd00:1::3"
    assert env["TOKEN"] == "::3" and env["PLANNED"] == "fd00:1::3/64" and env["DEVICE"] == "eth0"
    (own,) = next(node.software for node in plan.nodes if node.name == "station2")
    assert own.spec["configures"] == "eth0", "so that its changes are no surprise"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    forward: true\n", "", "gate does not forward"),
        ("segment: office, lifetime", "segment: old, lifetime", "has no IPv6"),
        ("segment: office, lifetime", "segment: hall, lifetime", "gate does not stand there"),
        ("segment: office, lifetime", "lifetime", "or on several, and does not say which"),
        ("lifetime: 10 min", "lifetime: 1 min", "is not from"),
        ("every: 1 min", "every: 20 min", "or above `lifetime`"),
        ("every: 1 min", "every: 1500 ms", "is not a whole number of seconds"),
        ("segment: office, lifetime", "segment: wan, lifetime", "no node of segment hall advertises"),
        ("segment: hall,", "segment: hall, forward: true,", "a router takes no advertisements"),
        ('"fd00:1::/64"', '"fd00:1::/65"', "make addresses of a /64"),
        ("far: {segment: wan}", "far: {segment: old, software: {o: {slaac: {}}}}", "stands on no segment"),
        ("{own: {slaac: {}}}", "{own: {slaac: {}}, more: {slaac: {}}}", "a node configures itself once"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(old: str, new: str, said: str) -> None:
    assert said in refused(old, new)
