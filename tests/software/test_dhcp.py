"""Tests DHCP in the plan: the addresses that the server gives to each node, the client's program, and
mistakes in files.
"""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

SERVER = "dhcp: {range: {from: 10.1.0.100, to: 10.1.0.199}, lease: 10 min, router: gate}"
FILE = f"""\
name: leases
segments:
  plant: {{subnet: 10.1.0.0/24}}
  hall: {{subnet: 10.1.0.0/24}}
  wan: {{subnet: 10.2.0.0/24}}
  six: {{subnet: "fd00:7::/64"}}
nodes:
  gate: {{segment: [plant, wan], forward: true}}
  giver:
    segment: plant
    software:
      server:
        {SERVER}
  far: {{segment: wan}}
  other: {{segment: hall}}
groups:
  station: {{count: 2, segment: hall, software: {{lease: {{dhcp-client: {{}}}}}}}}
links:
  line: {{between: [plant, hall], both: {{delay: 1 ms}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.giver.software.server.dhcp"
CLIENT = "groups.station.software.lease.dhcp-client"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("leases.yaml", text.encode()))


def process_of(plan: Plan, node: str) -> Process:
    (software,) = next(one for one in plan.nodes if one.name == node).software
    assert software.process is not None
    return software.process


def test_clients_get_their_planned_addresses_and_others_the_range() -> None:
    plan = planned()
    (file,) = process_of(plan, "giver").files
    lines = file.content.splitlines()
    stations = {n.name: n.interfaces[0] for n in plan.nodes if n.group == "station"}
    assert [line for line in lines if line.startswith("dhcp-host")] == [
        f"dhcp-host={card.mac},{card.address},{name}" for name, card in stations.items()
    ]
    assert "dhcp-range=10.1.0.0,static,255.255.255.0,600" in lines
    assert "dhcp-range=10.1.0.100,10.1.0.199,255.255.255.0,600" in lines
    assert "dhcp-option=option:router,10.1.0.1" in lines
    assert "dhcp-option=option:dns-server" in lines, "none is given"


def test_a_client_expects_its_planned_address() -> None:
    plan = planned()
    env = process_of(plan, "station2").env
    card = next(n for n in plan.nodes if n.name == "station2").interfaces[0]
    assert (env["DEVICE"], env["PLANNED"]) == (card.name, f"{card.address}/24")


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        (
            "from: 10.1.0.100",
            "from: 10.9.0.100",
            f"{PLACE}.range.from",
            "does not fit: the hosts of 10.1.0.0/24",
        ),
        ("to: 10.1.0.199", "to: 10.1.0.255", f"{PLACE}.range.to", "does not fit"),
        ("to: 10.1.0.199", "to: 10.1.0.99", f"{PLACE}.range", "does not fit: 10.1.0.99 is below 10.1.0.100"),
        ("lease: 10 min", "lease: 30 s", f"{PLACE}.lease", "at least 2 min"),
        ("router: gate", "router: far", f"{PLACE}.router", "does not stand on segment plant"),
        ("router: gate", "router: other", f"{PLACE}.router", "does not forward"),
        ("range: {", "segment: wan, range: {", f"{PLACE}.segment", "does not stand there"),
        ("dhcp-client: {}", "dhcp-client: {segment: six}", f"{CLIENT}.segment", "does not stand there"),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


def test_two_servers_on_a_segment_are_refused_over_links_too() -> None:
    second = "other: {segment: hall, software: {server: {dhcp: {}}}}"
    found = problems(FILE.replace("other: {segment: hall}", second))
    rule = "is a DHCP server here, too: a client would take whichever answers first"
    assert [p for p in found if f"{PLACE}: " in p and f"other {rule}" in p]
    assert [p for p in found if "nodes.other.software.server.dhcp: " in p and f"giver {rule}" in p]


def test_a_mistake_at_the_server_is_the_only_one_reported() -> None:
    assert len(problems(FILE.replace("lease: 10 min", "lease: ten"))) == 1


def test_a_client_without_a_server_is_refused() -> None:
    found = problems(FILE.replace("segment: hall, software", "segment: wan, software"))
    assert any(f"{CLIENT}: no node of segment wan is a DHCP server" in problem for problem in found)


def test_a_range_with_a_nodes_address_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"holds 10\.1\.0\.2, which is giver's; write a range above"):
        planned(FILE.replace("from: 10.1.0.100", "from: 10.1.0.2"))


def test_a_segment_of_ipv6_has_no_dhcp() -> None:
    file = FILE.replace("station: {count: 2, segment: hall", "station: {count: 2, segment: six")
    assert any("has IPv6, and DHCP here gives IPv4" in problem for problem in problems(file))


def test_two_servers_on_a_node_are_refused_once_with_a_remedy_that_can_be_followed() -> None:
    again = f"        {SERVER}\n      again: {{dhcp: {{segment: plant}}}}\n"
    (found,) = problems(FILE.replace(f"        {SERVER}\n", again))
    assert (
        "software.again.dhcp: 67: is already the port of server on this node; leave one of them out" in found
    )


@pytest.mark.parametrize("second", ["{}", "{segment: hall}"])
def test_two_clients_for_one_address_are_refused(second: str) -> None:
    again = FILE.replace(
        "{lease: {dhcp-client: {}}", f"{{lease: {{dhcp-client: {{}}}}, more: {{dhcp-client: {second}}}"
    )
    found = problems(again)
    for name in ("lease", "more"):
        assert any(f"software.{name}.dhcp-client: another client of this node" in one for one in found), found
    assert not [one for one in found if "port" in one]


def test_a_node_may_take_an_address_on_each_of_its_segments() -> None:
    node = """\
  edge:
    segment: [hall, wan]
    software: {one: {dhcp-client: {segment: hall}}, two: {dhcp-client: {segment: wan}}}
  far: {segment: wan, software: {server: {dhcp: {}}}}
"""
    plan = planned(FILE.replace("  far: {segment: wan}\n", node))
    clients = next(one for one in plan.nodes if one.name == "edge").software
    devices = [one.process.env["DEVICE"] for one in clients if one.process is not None]
    assert devices == ["eth0", "eth1"]
