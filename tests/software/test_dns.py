"""Tests name servers in the plan: their records, the servers to which they forward queries, and mistakes in
files.
"""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

SERVER = "dns: {domain: plant.test, names: {files.example: desk}, ttl: 60 s}"
FILE = f"""\
name: names
segments: {{lan: {{subnet: 10.1.0.0/24}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  names:
    segment: lan
    software:
      server:
        {SERVER}
  desk:
    segment: lan
    software:
      resolver:
        dns: {{forward: names}}
  island: {{segment: apart, software: {{server: {{dns: {{domain: far.test}}}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.names.software.server.dns"
DESK = "nodes.desk.software.resolver.dns"


def config(node: str) -> list[str]:
    plan = make_plan(parse("names.yaml", FILE.encode()))
    (software,) = next(one for one in plan.nodes if one.name == node).software
    assert software.process is not None
    (file,) = software.process.files
    return file.content.splitlines()


def test_a_server_has_every_node_in_its_domain_and_names_of_its_own() -> None:
    lines = config("names")
    assert [line for line in lines if line.startswith("host-record")] == [
        "host-record=files.example,10.1.0.2",
        "host-record=names.plant.test,10.1.0.1",
        "host-record=desk.plant.test,10.1.0.2",
        "host-record=island.plant.test,10.2.0.1",
    ]
    assert {"local=/plant.test/", "local-ttl=60", "no-hosts", "no-resolv"} <= set(lines)


def test_a_resolver_asks_another_server() -> None:
    lines = config("desk")
    assert "server=10.1.0.1" in lines and not [line for line in lines if line.startswith("host-record")]


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        (SERVER, "dns: {}", PLACE, "knows no name"),
        (
            "domain: plant.test",
            "domain: plant..test",
            f"{PLACE}.domain",
            "is not the name of a host or domain",
        ),
        (
            "files.example: desk",
            "files.example: disk",
            f"{PLACE}.names.files.example",
            "no node is called that",
        ),
        ("ttl: 60 s", "ttl: 100 ms", f"{PLACE}.ttl", "is not a whole number of seconds"),
        (
            "files.example: desk",
            "desk.plant.test: names",
            f"{PLACE}.names.desk.plant.test",
            "is the name of desk by `domain`, not of names",
        ),
        (
            "files.example: desk",
            "desk.plant.test: desk",
            f"{PLACE}.names.desk.plant.test",
            "is the name of desk by `domain` already",
        ),
        (
            "domain: plant.test",
            f"domain: {'.'.join(['a' * 63] * 3)}.{'a' * 56}",
            f"{PLACE}.domain",
            "makes island.DOMAIN longer than 253 characters",
        ),
        ("forward: names", "forward: desk", f"{DESK}.forward", "asks itself"),
        ("forward: names", "forward: island", f"{DESK}.forward", "no segment, link or router joins it"),
        (SERVER, f"{SERVER[:-1]}, forward: desk}}", f"{PLACE}.forward", "a question would go round"),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


def test_a_node_without_a_server_is_not_asked() -> None:
    refused(
        FILE.replace("island: {segment: apart,", "plain: {segment: lan}\n  island: {segment: apart,"),
        "forward: names",
        "forward: plain",
        f"{DESK}.forward",
        "plain is no name server",
    )


def test_a_name_twice_is_refused() -> None:
    twice = "names: {files.example: desk, files.example: names}"
    found = problems(FILE.replace("names: {files.example: desk}", twice))
    assert any("file.yaml:8: " in one and "files.example" in one and "twice" in one for one in found), found


def test_two_servers_of_a_node_are_refused_once() -> None:
    again = f"        {SERVER}\n      again: {{dns: {{domain: other.test}}}}\n"
    (found,) = problems(FILE.replace(f"        {SERVER}\n", again))
    assert "again.dns: 53: is already the port of server on this node; leave one of them out" in found
