"""Tests that static neighbours (ARP entries) are planned where address resolution would lose messages, and
nowhere else.
"""

from __future__ import annotations

import pytest

from contract.plan import Neighbour, Plan
from orchestrator.lab.node_config import network
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

PAIR = """\
name: pair
nodes:
  a: {software: {q: {udp: {to: b, push: {rate: RATE /s, size: 200 B}}}}}
  b: {software: {q: {udp: {listen: 7000}}}}
links: {l: {between: [a, b], forward: {delay: DELAY}, reverse: {delay: 1 ms}}}
run: {hold: 1 s}
"""
ROUTED = """\
name: routed
segments: {near: {subnet: 10.1.0.0/24}, mid: {subnet: 10.1.0.0/24}, far: {subnet: 10.2.0.0/24}}
nodes:
  a: {segment: near, software: {q: {udp: {to: b, push: {rate: 3000 /s, size: 200 B}}}}}
  quiet: {segment: near, software: {q: {udp: {to: b, push: {rate: 1 /s, size: 200 B}}}}}
  r: {segment: [mid, far], forward: true}
  b: {segment: far, software: {q: {udp: {listen: 7000}}}}
links: {l: {between: [near, mid], both: {delay: 100 ms}}}
run: {hold: 1 s}
"""


def plan(text: str, **values: str) -> Plan:
    for name, value in values.items():
        text = text.replace(name, value)
    return make_plan(parse("lab.yaml", text.encode()))


def knows(made: Plan) -> dict[str, list[str]]:
    owner = {card.address: node.name for node in made.nodes for card in node.interfaces}
    return {n.name: [owner[one.address] for one in n.neighbours] for n in made.nodes if n.neighbours}


@pytest.mark.parametrize(
    ("rate", "delay", "known"),
    [
        ("3000", "1 s", True),
        ("3000", "30 ms", True),  # 93 frames arrive within 31 ms, more than may wait for an answer
        ("1000", "30 ms", False),
        ("1", "400 ms", False),
        # the round trip is almost as long as the second after which the kernel repeats a request
        ("1", "600 ms", True),
        ("3000", "0 ms", False),
    ],
)
def test_where_a_round_trip_holds_more_than_the_kernel_keeps(rate: str, delay: str, known: bool) -> None:
    made = plan(PAIR, RATE=rate, DELAY=delay)
    assert knows(made) == ({"a": ["b"], "b": ["a"]} if known else {})


@pytest.mark.parametrize(
    ("rate", "loss", "known"),
    [
        ("1000", "loss: 1 %", True),  # one request in fifty is lost, and then the messages of a second
        ("50", "loss: 1 %", False),  # messages wait for a second and arrive late, but none is lost
        ("1", "loss: 15 %", True),  # 28 of 100 requests or answers are lost: three in a row may be
        ("1", "loss: 5 %", False),
        ("1000", "corrupt: 1 %", True),
        ("1000", "gilbert_elliott: {good_to_bad: 1 %, bad_to_good: 99 %, loss_in_bad: 100 %}", True),
        ("1000", "rate: 100 Mbit/s", False),
    ],
)
def test_where_an_asking_may_be_lost(rate: str, loss: str, known: bool) -> None:
    text = PAIR.replace("forward: {delay: DELAY}, reverse: {delay: 1 ms}", f"both: {{{loss}}}")
    assert knows(plan(text, RATE=rate)) == ({"a": ["b"], "b": ["a"]} if known else {})


def test_what_the_timeline_will_lose_counts_too() -> None:
    event = "timeline: [{at: hold + 500 ms, impair: l, forward: {loss: 90 %}}]\n"
    short = PAIR.replace("DELAY", "1 us")
    assert knows(plan(short, RATE="1")) == {}
    assert knows(plan(short + event, RATE="1")) == {"a": ["b"], "b": ["a"]}


def test_only_the_hop_that_is_long_is_known_by_both_ends() -> None:
    made = plan(ROUTED)
    assert knows(made) == {"a": ["r"], "r": ["a"]}
    a = next(node for node in made.nodes if node.name == "a")
    r = next(node for node in made.nodes if node.name == "r")
    assert a.neighbours == (Neighbour(r.interfaces[0].address, r.interfaces[0].mac, a.interfaces[0].name),)
    assert network(a)["neighbours"] == [
        {"address": n.address, "mac": n.mac, "device": n.device} for n in a.neighbours
    ]


def test_the_same_with_ipv6() -> None:
    text = ROUTED.replace("10.1.0.0/24", "fd00:1::/64").replace("10.2.0.0/24", "fd00:2::/64")
    made = plan(text)
    assert knows(made) == {"a": ["r"], "r": ["a"]}
    assert all(":" in n.address for node in made.nodes for n in node.neighbours)


def test_on_a_segment_that_is_short_nobody_is_known() -> None:
    assert knows(plan(ROUTED, **{"100 ms": "1 ms"})) == {}
