"""Tests routing tables of their own (VRF) in the plan: devices, routes, paths, and mistakes in files."""

from __future__ import annotations

import pytest

from contract.plan import Plan, Route, Vrf
from orchestrator.plan.build import make_plan
from orchestrator.plan.paths import Paths
from orchestrator.plan.vrfs import route_lines
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: vrfs
segments:
  red-a: {subnet: 10.1.0.0/24}
  blue-a: {subnet: 10.2.0.0/24}
  red-b: {subnet: 10.3.0.0/24}
  blue-b: {subnet: 10.4.0.0/24}
nodes:
  one: {segment: [red-a, blue-a], forward: true, vrf: {red: [red-a, red-core], blue: [blue-a, blue-core]}}
  two: {segment: [red-b, blue-b], forward: true, vrf: {red: [red-b, red-core], blue: [blue-b, blue-core]}}
  red1: {segment: red-a, software: {ask: {udp: {to: red2, push: {size: 90 B, rate: 1 /s}}}}}
  red2: {segment: red-b, software: {hear: {udp: {listen: 9000}}}}
  blue1: {segment: blue-a}
  blue2: {segment: blue-b}
links:
  red-core: {between: [one, two], both: {delay: 10 ms}}
  blue-core: {between: [one, two], both: {delay: 1 ms}}
run: {hold: 4 s}
"""
OWN = "forward: true, software: {x: {udp: {listen: 9000}}}"
PLACE = "nodes.one.vrf"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("vrfs.yaml", text.encode()))


def refused(old: str, new: str) -> str:
    with pytest.raises(TopologyError) as refusal:
        planned(FILE.replace(old, new))
    return str(refusal.value)


def test_each_table_has_its_interfaces_and_routes() -> None:
    one = planned().nodes[0]
    assert one.routes == ()
    assert one.vrfs == (
        Vrf("red", 1001, ("eth0", "eth2"), (Route(("10.3.0.0/24",), ("10.255.0.2",)),)),
        Vrf("blue", 1002, ("eth1", "eth3"), (Route(("10.4.0.0/24",), ("10.255.0.6",)),)),
    )
    assert route_lines(one)[:2] == [
        "route replace unreachable 0.0.0.0/0 metric 4278198272 table 1001",
        "route replace 10.3.0.0/24 proto static via 10.255.0.2 table 1001",
    ]
    assert not [line for line in route_lines(one, ["10.255.0.2"]) if "10.3.0.0" in line], (
        "a link that is down"
    )


def test_devices_are_made_before_addresses_are_set() -> None:
    plan = planned()
    step = next(step for step in plan.steps if step.netns == plan.nodes[0].netns)
    assert step.text.splitlines()[:4] == [
        "link add name red type vrf table 1001",
        "link set dev red up",
        "link set dev eth0 master red",
        "link set dev eth2 master red",
    ]


def test_a_path_stays_in_its_table_although_another_is_shorter() -> None:
    plan = planned()
    paths = Paths.of(plan)
    way = paths.between("red1", "red2")
    assert way is not None and way.nodes == ("red1", "one", "two", "red2")
    assert way.delay_ns() == 10_000_000
    assert paths.between("red1", "blue2") is None and paths.between("red1", "blue1") is None


def test_a_router_without_tables_of_its_own_keeps_its_routes() -> None:
    plain = planned(FILE.replace(", vrf: {red: [red-a, red-core], blue: [blue-a, blue-core]}", ""))
    assert plain.nodes[0].vrfs == () and plain.nodes[0].routes != ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{udp: {to: red2,", "{udp: {to: blue2,", "blue2"),
        ("[red-a, blue-a], forward: true", "[red-a, blue-a]", "is of routers, and one does not forward"),
        ("red: [red-a, red-core], blue", "eth0: [red-a, red-core], blue", "is no name of a device"),
        ("red: [red-a, red-core], blue", "red: [], blue", "has no interface"),
        ("red: [red-a, red-core], blue", "red: [red-b], blue", f'{PLACE}.red: "red-b"'),
        ("blue: [blue-a, blue-core]", "blue: [red-a]", f'{PLACE}.blue: "red-a": is in red already'),
        ("forward: true, vrf: {red: [red-a", "forward: true, vlan: 5, vrf: {red: [red-a", "beside `vlan`"),
        ("forward: true, vrf: {red: [red-a", "forward: true, routes: [], vrf: {red: [red-a", "`routes`"),
        ("forward: true, vrf: {red: [red-a", "forward: true, kind: vm, vrf: {red: [red-a", "of light nodes"),
        ("forward: true, vrf: {red: [red-a", f"{OWN}, vrf: {{red: [red-a", "uses the main table"),
    ],
)  # fmt: skip
def test_mistakes(old: str, new: str, said: str) -> None:
    assert said in refused(old, new)
