"""Tests HTTP in the plan: settings of both sides, TLS, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import Plan, Software
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

ASK = "http: {to: server, request: {size: 100 B, reply: 1 kB, rate: 10 /s}}"
LISTEN = "{http: {listen: 80}}"
FILE = f"""\
name: web
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}}}
nodes:
  server: {{segment: far, software: {{in: {LISTEN}}}}}
  other: {{segment: far, software: {{in: {{http: {{listen: 80}}}}}}}}
  client:
    segment: near
    software:
      ask:
        {ASK}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
TLS_SERVER = "server: {segment: far, software: {in: {http: {listen: 443, tls: lab}}}}"
PLACE = "nodes.client.software.ask.http"


def planned(ask: str = ASK, listen: str = LISTEN) -> Plan:
    text = FILE.replace(ASK, ask).replace(f"{{in: {LISTEN}}}", f"{{in: {listen}}}", 1)
    return make_plan(parse("web.yaml", text.encode()))


def sides(plan: Plan) -> tuple[Software, Software]:
    by_name = {node.name: node.software[0] for node in plan.nodes}
    return by_name["server"], by_name["client"]


def test_the_agent_gets_the_settings_of_the_requests() -> None:
    more = ASK.replace("server,", "server, path: /a?b=c, connections: 4, keep_alive: false,")
    server, client = sides(planned(more))
    assert client.spec["http"] == {"path": "/a?b=c", "keep_alive": False}
    assert (client.spec["connections"], client.spec["inflight"]) == (4, 1)
    assert client.ports == server.ports == {"http": (80,)}
    assert (client.role, server.role) == ("client", "server") and "tls" not in client.spec


def test_http2_has_streams_and_its_version_in_the_specification() -> None:
    server, client = sides(planned(ASK.replace("server,", "server, version: 2, streams: 7, connections: 2,")))
    assert client.spec["http"] == {"path": "/", "keep_alive": True, "version": 2}
    assert (client.spec["connections"], client.spec["inflight"]) == (2, 7)
    assert server.spec["http"] == {"path": "/", "keep_alive": True}
    first = sides(planned(ASK.replace("server,", "server, version: 1.1,")))[1]
    assert "version" not in first.spec["http"] and first.spec["inflight"] == 1


def test_a_request_arrives_once_and_may_be_lost() -> None:
    (flow,) = planned().flows
    guarantee = flow.deliveries[0].guarantee
    assert guarantee.single and not guarantee.lossless and not guarantee.ordered


def test_both_sides_get_certificates_of_the_lab() -> None:
    tls = ASK.replace("server,", "server, tls: lab,")
    server, client = sides(planned(tls, "{http: {listen: 443, tls: lab}}"))
    assert client.spec["tls"]["server_name"] == "server" and client.spec["tls"]["versions"] == ["1.2", "1.3"]
    assert "BEGIN CERTIFICATE" in client.spec["tls"]["ca"]
    assert "BEGIN PRIVATE KEY" in server.spec["accept_tls"]["key"]
    assert client.ports == server.ports == {"tls": (443,)}


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("http: {listen: 80, path: /a}", ".path", "does not belong to the side that listens"),
        ("http: {listen: 80, tls: {server_name: a}}", ".tls.server_name", "to the side that listens"),
        (ASK.replace("server,", "server, version: 3,"), ".version", "1.1"),
        (ASK.replace("server,", "server, streams: 7,"), ".streams", "belongs to HTTP/2"),
        (ASK.replace("server,", "server, version: 2, streams: 1001,"), ".streams", "at most 1000"),
        ("http: {listen: 80, version: 2}", ".version", "does not belong to the side that listens"),
        ("http: {to: server}", "", "says to whom, but not what it sends"),
        ("http: {to: server, push: {size: 100 B, rate: 1 /s}}", ".push", "is not a key here"),
        (ASK.replace("server,", "server, path: a b,"), ".path", "/"),
        (ASK.replace("server,", "server, connections: 0,"), ".connections", "at least 1"),
        (ASK.replace("server,", "server, connections: 1001,"), ".connections", "at most 1000"),
        (ASK.replace("server,", "server, tls: lab,"), ".tls", "the server of server speaks no TLS"),
        (ASK.replace("server,", "[server, other], tls: lab,"), ".to", "TLS to more than one server"),
        (ASK.replace("100 B", "2 MiB"), ".request.size", "from 28 to 1048576 bytes"),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, ASK, new, f"{PLACE}{place}", rule)


def test_a_server_with_tls_refuses_a_client_without() -> None:
    found = problems(FILE.replace(f"server: {{segment: far, software: {{in: {LISTEN}}}}}", TLS_SERVER))
    assert any(f"{PLACE}.tls: the server of server speaks TLS only" in one for one in found), found
