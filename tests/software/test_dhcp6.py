"""Tests DHCPv6 in the plan: the server's addresses, the client's program, and mistakes in files."""

from __future__ import annotations

import pytest

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: leases6
segments:
  office: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  hall: {subnet: [10.1.0.0/24, "fd00:1::/64"]}
  wan: {subnet: "fd00:2::/64"}
  old: {subnet: 10.3.0.0/24}
nodes:
  gate:
    segment: [office, wan, old]
    forward: true
    software: {six: {dhcp6: {segment: office, lease: 2 min, dns: gate}}}
  far: {segment: wan, software: {answers: {udp: {listen: 9000}}}}
groups:
  station:
    count: 2
    segment: hall
    software:
      own: {dhcp6-client: {}}
      ask: {udp: {to: far, request: {size: 100 B, reply: 100 B, rate: 2 /s, timeout: 1 s}}}
links: {line: {between: [office, hall], both: {delay: 1 ms}}}
run: {hold: 10 s}
"""


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("leases6.yaml", text.encode()))


def process_of(plan: Plan, node: str) -> Process:
    software = next(one for one in plan.nodes if one.name == node).software[0]
    assert software.process is not None
    return software.process


def refused(old: str, new: str) -> str:
    with pytest.raises(TopologyError) as refusal:
        planned(FILE.replace(old, new))
    return "\n".join(map(str, refusal.value.problems))


def test_the_server_gives_each_client_its_planned_address() -> None:
    plan = planned()
    lines = process_of(plan, "gate").files[0].content.splitlines()
    stations = {node.name: node.interfaces[0] for node in plan.nodes if node.group == "station"}
    assert [line for line in lines if line.startswith("dhcp-host")] == [
        f"dhcp-host={card.mac},[{card.second}],{name}" for name, card in stations.items()
    ]
    assert "dhcp-range=fd00:1::,static,64,120" in lines
    assert "dhcp-option=option6:dns-server,[fd00:1::1]" in lines
    assert process_of(plan, "station2").env["PLANNED"] == "fd00:1::3/64"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lease: 2 min", "lease: 1 min", "is not a whole number of seconds of at least 2 min"),
        ("segment: office, lease", "segment: old, lease", "has no IPv6"),
        ("segment: office, lease", "segment: hall, lease", "gate does not stand there"),
        ("segment: office, lease", "lease", "or on several, and does not say which"),
        ("segment: office, lease", "segment: wan, lease", "no node of segment hall is a DHCPv6 server"),
        ("dns: gate", "dns: nobody", "nobody"),
        ("own: {dhcp6-client: {}}", "own: {dhcp6-client: {}}\n      o: {slaac: {}}", "another client"),
        ("own: {dhcp6-client: {}}", "own: {dhcp6-client: {segment: old}}", "does not stand there"),
        ("{six: {dhcp6:", "{c: {dhcp6-client: {segment: office}}, six: {dhcp6:", "is the DHCPv6 server"),
        ("  far: {segment: wan", "  two: {segment: hall, software: {s: {dhcp6: {}}}}\n  far: {segment: wan",
         "is a DHCPv6 server here, too"),
    ],
)  # fmt: skip
def test_mistakes(old: str, new: str, said: str) -> None:
    assert said in refused(old, new)
