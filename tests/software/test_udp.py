"""Tests messages over UDP in the plan: senders and receivers, the messages, and mistakes."""

from __future__ import annotations

import dataclasses

import pytest
from mistakes import refused

from contract.plan import Payload, Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.udp import KIND
from orchestrator.topology.loading import parse

REQUEST = "request: {size: 100 B, reply: 400 B, rate: 10 /s, rate_of: client, deadline: 50 ms}"
ASK = f"udp: {{to: server, {REQUEST}}}"
FILE = f"""\
name: udp
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  server: {{segment: far, software: {{in: {{udp: {{listen: 9000}}}}}}}}
  mute: {{segment: far}}
  stranger: {{segment: apart, software: {{in: {{udp: {{listen: 9000}}}}}}}}
groups:
  sink: {{count: 2, segment: far, software: {{in: {{udp: {{listen: 9000}}}}}}}}
  client:
    count: 2
    segment: near
    software:
      ask:
        {ASK}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "groups.client.software.ask.udp"


def planned(new: str = ASK) -> Plan:
    return make_plan(parse("udp.yaml", FILE.replace(ASK, new).encode()))


def test_a_request_and_its_reply() -> None:
    plan = planned()
    flow = plan.flows[0]
    assert (flow.name, flow.pattern, flow.sender) == ("client1.ask", "request", "client1")
    assert (flow.payload, flow.reply) == (Payload("bytes", 100), Payload("bytes", 400))
    assert flow.deadline_ns == 50_000_000
    (delivery,) = flow.deliveries
    assert plan.receivers[delivery.receivers] == ("server",)
    guarantee = delivery.guarantee
    assert not (guarantee.lossless or guarantee.single or guarantee.ordered or guarantee.while_session)


def test_the_agent_is_told_addresses_ports_and_patience() -> None:
    software = next(node for node in planned().nodes if node.name == "client1").software[0]
    to = [{"endpoint": "server", "address": "10.1.0.1", "port": 9000}]
    assert software.spec == {"listen": None, "to": to, "timeout_ns": 10**9}
    assert (software.kind, software.role, software.ports) == ("udp", "client", {"vnet": (9000,)})
    server = planned().nodes[0].software[0]
    assert server.spec == {"listen": 9000, "to": [], "timeout_ns": 0}
    assert server.session is not None and server.session.listens and server.role == "server"


def test_groups_and_lists_are_fanned_out_to() -> None:
    plan = planned("udp: {to: [server, sink], push: {size: 28 B, rate: 1 /s}}")
    assert set(plan.receivers.values()) == {("server", "sink1", "sink2")}
    assert {flow.reply for flow in plan.flows} == {None}


def test_two_patterns_of_one_software_are_two_flows() -> None:
    stream = "stream: {size: 1 kB, rate: 100 /s}"
    plan = planned(f"udp: {{to: server, {REQUEST}, {stream}}}")
    assert [flow.name for flow in plan.flows[:2]] == ["client1.ask.request", "client1.ask.stream"]
    assert plan.flows[1].traffic_class == "client.ask.stream"


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("udp: {}", "", "exactly one of the keys listen and to"),
        (f"udp: {{listen: 9000, to: server, {REQUEST}}}", "", "exactly one of the keys listen and to"),
        (f"udp: {{listen: 9000, {REQUEST}}}", ".request", "does not belong to the side that listens"),
        (
            "udp: {to: server}",
            "",
            "says to whom, but not what it sends; write `request:`, `push:`, `stream:`",
        ),
        (ASK.replace("server", "servr"), ".to", 'no node or group is called that; did you mean "server"?'),
        (ASK.replace("server", "[sink, servr]"), ".to[1]", "no node or group is called that"),
        (ASK.replace("server", "client"), ".to", "a flow to itself"),
        (ASK.replace("server", "client1"), ".to", "a flow to itself"),
        (ASK.replace("server", "mute"), ".to", "no udp software of mute listens"),
        (ASK.replace("to: server", "to: server, port: 9001"), ".to", "listens on port 9001"),
        (ASK.replace("server", "stranger"), ".to", "joins it to stranger"),
        (ASK.replace("size: 100 B", "size: 27 B"), ".request.size", "from 28 to 65507 bytes"),
        (ASK.replace("reply: 400 B", "reply: 64 KiB"), ".request.reply", "from 28 to 65507 bytes"),
        (ASK.replace("reply: 400 B, ", ""), ".request.reply", "is missing"),
        (ASK.replace("request:", "push:"), ".push", "a reply without a request"),
        (ASK.replace("rate: 10 /s", "rate: 0 /s"), ".request.rate", "must be more than zero"),
        (ASK.replace("deadline: 50 ms", "timeout: 0 s"), ".request.timeout", "is not above zero"),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, ASK, new, f"{PLACE}{place}", rule)


def test_messages_may_go_to_one_receiver_after_the_other() -> None:
    new = ASK.replace("to: server", "to: sink").replace("rate: 10", "spread: round-robin, rate: 10")
    flow = planned(new).flows[0]
    assert flow.spread == "round-robin" and planned().flows[0].spread == "all"
    assert planned(new).receivers[flow.deliveries[0].receivers] == ("sink1", "sink2")
    sender = next(node for node in planned(new).nodes if node.name == "client1").software[0]
    costs = {
        word: KIND.costs(sender, [dataclasses.replace(flow, spread=word)]) for word in ("all", "round-robin")
    }
    (all_of_it, _), (turns, _) = costs["all"].packets, costs["round-robin"].packets
    assert all_of_it[0] == 2 * turns[0]
    assert KIND.words(sender, [flow]).endswith("to one after the other")


def test_ports_of_a_node_are_apart_by_transport() -> None:
    listens = "in: {udp: {listen: 9000}}"
    refused(
        FILE,
        listens,
        f"{listens}, b: {{udp: {{listen: 9000}}}}",
        "nodes.server.software.b.udp.listen",
        "of in",
    )
    assert parse("f", FILE.replace(listens, f"{listens}, b: {{broker: mosquitto, port: 9000}}", 1).encode())


def test_two_that_listen_need_a_port() -> None:
    listens = "in: {udp: {listen: 9000}}"
    text = FILE.replace(listens, f"{listens}, b: {{udp: {{listen: 9001}}}}", 1)
    refused(
        text.replace("to: server", "to: server, port: 9001"),
        ", port: 9001",
        "",
        f"{PLACE}.to",
        "more than one",
    )


def test_a_deadline_counts_the_way_back_too() -> None:
    (note,) = planned(ASK.replace("deadline: 50 ms", "deadline: 15 ms")).notes
    assert "deadline of 15 ms, and the way there and back from client1 to server takes 20 ms" in note.text
