"""Tests ZeroMQ in the plan: the binding and connecting ends, the answers, and mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

REQUEST = "request: {size: 1699 B, reply: 1699 B, rate: 5 /s, timeout: 5 s}"
ROUTER = f"router: 5555, {REQUEST}"
MULTICAST = f"pub: 5555, transport: epgm, rate_limit: 250 kbit/s, tpdu: 113 B, answers: 5556, {REQUEST}"
FILE = f"""\
name: zeromq
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  utility: {{segment: far, software: {{updates: {{zeromq: {{{ROUTER}}}}}}}}}
  stranger: {{segment: apart}}
  gate: {{segment: [near, apart], forward: true}}
groups:
  consumer: {{count: 3, segment: near, software: {{meter: {{zeromq: {{dealer: utility}}}}}}}}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
PUBLISHED = FILE.replace(ROUTER, MULTICAST).replace("dealer: utility", "sub: utility")
SENDER, RECEIVER = "nodes.utility.software.updates.zeromq", "groups.consumer.software.meter.zeromq"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("zeromq.yaml", text.encode()))


def spec(plan: Plan, node: str) -> dict[str, Any]:
    return next(one for one in plan.nodes if one.name == node).software[0].spec


def test_the_router_asks_every_dealer_once_all_have_connected() -> None:
    plan = planned()
    (flow,) = plan.flows
    assert (flow.pattern, flow.sender, flow.payload.bytes) == ("request", "utility", 1699)
    assert plan.receivers[flow.deliveries[0].receivers] == ("consumer1", "consumer2", "consumer3")
    connects = [s.session.connect_ns for n in plan.nodes for s in n.software if s.session is not None]
    assert flow.start_ns == max(connects) + 1_000_000_000
    guarantee = flow.deliveries[0].guarantee
    assert guarantee.lossless and guarantee.single and guarantee.ordered and guarantee.while_session


def test_the_agent_is_told_sockets_names_and_addresses() -> None:
    plan = planned()
    utility, consumer = spec(plan, "utility"), spec(plan, "consumer2")
    assert (utility["socket"], utility["port"]) == ("router", 5555)
    assert utility["to"] == ["consumer1", "consumer2", "consumer3"]
    assert (consumer["socket"], consumer["port"], consumer["answers"]) == ("dealer", 5555, None)
    address = next(node for node in plan.nodes if node.name == "utility").interfaces[0].address
    assert consumer["address"] == address


def test_multicast_is_told_to_both_sides_and_guarantees_no_arrival() -> None:
    plan = planned(PUBLISHED)
    for node in ("utility", "consumer3"):
        told = spec(plan, node)
        own = next(one for one in plan.nodes if one.name == node).interfaces[0].address
        assert (told["transport"], told["group"], told["own"]) == ("epgm", "239.192.0.1", own)
        assert (told["rate_bps"], told["tpdu_bytes"], told["answers"]) == (250_000, 133, 5556)
    assert not plan.flows[0].deliveries[0].guarantee.lossless
    utility = next(node for node in plan.nodes if node.name == "utility")
    assert utility.software[0].ports == {"pgm": (5555,)}, "captures know it"


def test_a_socket_that_nobody_connects_to_sends_nothing_and_says_so() -> None:
    text = FILE.replace(", software: {meter: {zeromq: {dealer: utility}}}", "")
    plan = planned(text)
    assert plan.flows == () and "no client connects" in plan.notes[0].text


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (
            ROUTER,
            f"{ROUTER}, dealer: stranger",
            SENDER,
            "exactly one of the keys router, dealer, pub and sub",
        ),
        (ROUTER, "router: 5555", SENDER, "does not say what it sends"),
        (ROUTER, f"pub: 5555, {REQUEST}", f"{SENDER}.request", "a SUB cannot answer by its own socket"),
        (ROUTER, f"transport: epgm, {ROUTER}", f"{SENDER}.transport", "goes with `pub` alone"),
        (ROUTER, f"rate_limit: 1 Mbit/s, {ROUTER}", f"{SENDER}.rate_limit", "belongs to multicast"),
        (ROUTER, f"{ROUTER}, answers: 5555", f"{SENDER}.answers", "the port that the socket itself"),
        ("1699 B, reply", "20 B, reply", f"{SENDER}.request.size", "a message has from 28"),
        ("dealer: utility", "dealer: nobody", f"{RECEIVER}.dealer", "no node is called that"),
        ("dealer: utility", "dealer: stranger", f"{RECEIVER}.dealer", "no ROUTER runs on node stranger"),
        ("dealer: utility", "sub: utility", f"{RECEIVER}.sub", "no PUB runs on node utility"),
        (
            "dealer: utility",
            "dealer: utility, send_queue: 5",
            f"{RECEIVER}.send_queue",
            "does not belong to a dealer",
        ),
    ],
)
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("reply: 1699 B,", "reply: 1699 B, spread: round-robin,", f"{SENDER}.request.spread", "to all"),
        ("tpdu: 113 B", "tpdu: 1501 B", f"{SENDER}.tpdu", "more than the MTU of far, 1500 bytes"),
        (MULTICAST, f"group: 10.1.0.9, {MULTICAST}", f"{SENDER}.group", "is no multicast address"),
        (
            "count: 3, segment: near",
            "count: 3, segment: apart",
            f"{RECEIVER}.sub",
            "not forwarded by routers",
        ),
    ],
)
def test_mistakes_of_multicast_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(PUBLISHED, old, new, place, rule)
