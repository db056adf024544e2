"""Tests messages over TCP in the plan: settings of the connection, guarantees, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

ASK = "tcp: {to: server, nodelay: true, reconnect: 2 s, request: {size: 100 B, reply: 1 kB, rate: 10 /s}}"
FILE = f"""\
name: tcp
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}}}
nodes:
  server: {{segment: far, software: {{in: {{tcp: {{listen: 9001}}}}}}}}
  client:
    segment: near
    software:
      ask:
        {ASK}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.client.software.ask.tcp"


def planned(new: str = ASK) -> Plan:
    return make_plan(parse("tcp.yaml", FILE.replace(ASK, new).encode()))


def test_the_agent_is_told_the_settings_of_the_connection() -> None:
    server, client = (node.software[0] for node in planned().nodes)
    to = [{"endpoint": "server", "address": "10.1.0.1", "port": 9001}]
    own = {"timeout_ns": 10**9, "nodelay": True, "reconnect_ns": 2 * 10**9, "queue": 1000}
    assert client.spec == {"listen": None, "to": to, **own}
    assert (server.spec["listen"], server.spec["nodelay"], server.ports) == (9001, False, {"vnet": (9001,)})
    assert (client.role, server.role) == ("client", "server")


def test_all_is_promised_while_the_connection_lasts() -> None:
    plan = planned()
    (flow,) = plan.flows
    guarantee = flow.deliveries[0].guarantee
    assert guarantee.name == "TCP"
    assert guarantee.lossless and guarantee.single and guarantee.ordered and guarantee.while_session
    session = plan.nodes[1].software[0].session
    assert session is not None and session.patience_ns == 924_600_000_000


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("tcp: {listen: 9001, queue: 5}", ".queue", "does not belong to the side that listens"),
        ("tcp: {to: server}", "", "says to whom, but not what it sends; write `request:`, `push:`"),
        ("tcp: {to: server, stream: {size: 100 B, rate: 1 /s}}", ".stream", "is not a key here"),
        ("tcp: {to: server, push: {size: 2 MiB, rate: 1 /s}}", ".push.size", "from 28 to 1048576 bytes"),
        ("tcp: {to: server, push: {size: 27 B, rate: 1 /s}}", ".push.size", "from 28 to 1048576 bytes"),
        (
            "tcp: {to: server, push: {size: 90 B, reply: 90 B, rate: 1 /s}}",
            ".push",
            "a reply without a request",
        ),
        ("tcp: {to: client, push: {size: 90 B, rate: 1 /s}}", ".to", "a flow to itself"),
        ("tcp: {to: server, queue: 0, push: {size: 90 B, rate: 1 /s}}", ".queue", "must be at least 1"),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, ASK, new, f"{PLACE}{place}", rule)


def test_a_broker_and_a_server_do_not_share_a_port() -> None:
    listens = "in: {tcp: {listen: 9001}}"
    new = f"{listens}, b: {{broker: mosquitto, port: 9001}}"
    refused(FILE, listens, new, "nodes.server.software.b.port", "is already the port of in on this node")
