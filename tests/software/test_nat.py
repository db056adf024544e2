"""Tests NAT in the plan: the rules of nf_tables that a router gets, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import Software
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

NAT = "nat: {inside: [plant, hall], outside: wan}"
FILE = f"""\
name: hidden
segments:
  plant: {{subnet: 192.168.1.0/24}}
  hall: {{subnet: 192.168.2.0/24}}
  wan: {{subnet: 203.0.113.0/24}}
  office: {{subnet: 203.0.113.0/24}}
  six: {{subnet: "fd00:7::/64"}}
nodes:
  gate:
    segment: [plant, hall, wan, six]
    forward: true
    software:
      nat:
        {NAT}
  panel: {{segment: plant}}
  server: {{segment: office}}
links:
  line: {{between: [wan, office], both: {{delay: 1 ms}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.gate.software.nat.nat"


def nat(text: str = FILE) -> Software:
    (software,) = make_plan(parse("hidden.yaml", text.encode())).nodes[0].software
    return software


def rules(software: Software) -> str:
    assert software.process is not None
    return next(file.content for file in software.process.files if file.path == "nat/rules.nft")


def test_each_inside_segment_gets_the_outside_address_and_is_hidden() -> None:
    text = rules(nat())
    for subnet, name in (("192.168.1.0/24", "plant"), ("192.168.2.0/24", "hall")):
        assert (
            f'oifname "eth2" ip saddr {subnet} counter snat to 203.0.113.1 comment "vnet: from {name}"'
            in text
        )
        assert f'iifname "eth2" ip daddr {subnet} counter drop comment "vnet: {name} is hidden"' in text
    assert "dnat" not in text


def test_a_port_leads_to_a_node_inside() -> None:
    ports = "ports: [{port: 8080, to: panel, to_port: 80}, {port: 8080, to: panel, protocol: udp}]"
    software = nat(FILE.replace("outside: wan", f"outside: wan, {ports}"))
    text = rules(software)
    assert "ip daddr 203.0.113.1 tcp dport 8080 counter dnat to 192.168.1.2:80 " in text
    assert "udp dport 8080 counter dnat to 192.168.1.2:8080 " in text
    assert software.process is not None
    assert int(software.process.env["RULES"]) == text.count('comment "vnet: ') == 6


def test_the_program_gets_the_timeouts_that_the_file_has() -> None:
    process = nat(FILE.replace("outside: wan", "outside: wan, udp_timeout: 20 s")).process
    assert process is not None
    assert process.env["UDP_TIMEOUT"] == "20" and "TCP_TIMEOUT" not in process.env


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        ("outside: wan", "outside: plant", f"{PLACE}.outside", "is inside, too: the NAT has no two sides"),
        ("outside: wan", "outside: office", f"{PLACE}.outside", "gate does not stand there"),
        ("inside: [plant, hall]", "inside: lobby", f"{PLACE}.inside", "gate does not stand there"),
        ("inside: [plant, hall]", "inside: six", f"{PLACE}.inside", "of which nothing is translated"),
        (NAT, f"{NAT[:-1]}, ports: [{{port: 80, to: server}}]}}", f"{PLACE}.ports[0].to", "not stand inside"),
        (
            NAT,
            f"{NAT[:-1]}, ports: [{{port: 80, to: panel}}, {{port: 80, to: panel, to_port: 81}}]}}",
            f"{PLACE}.ports[1].port",
            "an earlier entry has port 80 of tcp",
        ),
        (NAT, f"{NAT[:-1]}, udp_timeout: 1500 ms}}", f"{PLACE}.udp_timeout", "not a whole number of seconds"),
        (NAT, f"{NAT[:-1]}, tcp_timeout: 3000000 s}}", f"{PLACE}.tcp_timeout", "from 1 to 2147483"),
        (
            NAT,
            f"{NAT[:-1]}, ports: [{{port: 80, to: gate}}]}}",
            f"{PLACE}.ports[0].to",
            "is the router itself",
        ),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


@pytest.mark.parametrize(
    ("was", "now", "rule"),
    [
        ("segment: [plant, hall, wan, six]", "segment: plant", "has no two sides: gate stands in 1 segment"),
        ("forward: true", "forward: false", "node gate does not forward"),
    ],
)
def test_a_router_that_cannot_translate_is_refused_at_its_nat(was: str, now: str, rule: str) -> None:
    line = FILE[: FILE.index(NAT)].count("\n") + 1
    found = problems(FILE.replace(was, now))
    assert any(p.startswith(f"file.yaml:{line}: {PLACE}: ") and rule in p for p in found), found


def test_a_second_nat_of_a_node_is_refused() -> None:
    found = problems(FILE.replace(f"        {NAT}\n", f"        {NAT}\n      again: {{{NAT}}}\n"))
    assert any("a node has one NAT" in problem for problem in found)
