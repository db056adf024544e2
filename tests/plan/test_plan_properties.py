"""Tests properties of every plan: unique names and addresses, clients in order, schedules that add up."""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

TEXT = """\
name: generated
segments:
  near: {{subnet: 10.7.0.0/21}}
  far: {{subnet: 10.7.0.0/21}}
nodes:
  broker: {{segment: far, address: 10.7.0.3, software: {{m: {{broker: mosquitto}}}}}}
  {long}:
    segment: [near]
    software: {{s: {{mqtt: {{broker: broker, subscribe: [{{topic: t/#}}]}}}}}}
groups:
  {first}:
    count: {count}
    segment: near
    software:
      p: {{mqtt: {{broker: broker, publish: {{topic: "t/{{index}}", rate: {rate} /s, settle: 0 s}}}}}}
  {second}:
    count: {others}
    segment: far
    software:
      q:
        mqtt:
          broker: broker
          subscribe: [{{topic: "u/{{index}}"}}]
          publish: {{topic: "u/{{previous}}", rate: 2 /s, rate_of: client}}
links:
  wan: {{between: [near, far], both: {{delay: {delay} ms, rate: {mbit} Mbit/s}}}}
  {first}-link: {{between: [{first}, near], forward: {{loss: 1 %}}}}
run: {{connect_interval: {gap} ms, hold: 10 s, drain: 2 s}}
timeline:
  - {{at: hold + 1 s, partition: {second}, for: 3 s}}
  - {{at: hold + 2 s, flap: wan, down: 100 ms, up: 200 ms, times: 3}}
"""

_NAMES = st.lists(
    st.from_regex(r"[a-m][a-z0-9-]{0,22}[a-z]", fullmatch=True), min_size=3, max_size=3, unique=True
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    first, second, long = draw(_NAMES)
    text = TEXT.format(
        first=f"z{first}",
        second=f"y{second}",
        long=f"x{long}",
        count=draw(st.integers(1, 120)),
        others=draw(st.integers(1, 60)),
        rate=draw(st.integers(1, 1000)),
        delay=draw(st.integers(0, 3000)),
        mbit=draw(st.integers(1, 10_000)),
        gap=draw(st.integers(0, 500)),
    )
    return make_plan(parse("generated.yaml", text.encode()), None, draw(st.integers(0, 2**63 - 1)))


def names_and_addresses_are_unique_and_fit(plan: Plan) -> None:
    cards = [card for node in plan.nodes for card in node.interfaces]
    core = [card.port for card in cards] + [segment.bridge for segment in plan.segments]
    core += [d.device for link in plan.links if link.kind == "segments" for d in (link.forward, link.reverse)]
    assert len(set(core)) == len(core)
    assert all(0 < len(name) <= 15 and name not in ("lo", "all", "default") for name in core)
    assert len({card.address for card in cards}) == len(cards)
    assert len({card.mac for card in cards}) == len(cards)
    assert all(int(card.mac[:2], 16) & 3 == 2 for card in cards), "locally administered and unicast"
    for card in cards:
        network = ipaddress.IPv4Network("10.7.0.0/21")
        address = ipaddress.IPv4Address(card.address)
        assert address in network and address not in (network.network_address, network.broadcast_address)
        assert card.prefix == 21
    assert len({link.name for link in plan.links}) == len(plan.links)
    assert len({node.netns for node in plan.nodes} | {plan.core_netns}) == len(plan.nodes) + 1


def clients_connect_one_after_another_subscribers_first(plan: Plan) -> None:
    clients = [(s.session, s.spec) for n in plan.nodes for s in n.software if s.session is not None]
    offsets = sorted(session.connect_ns for session, _ in clients)
    gaps = {b - a for a, b in itertools.pairwise(offsets)}
    assert offsets[0] == 0 and len(gaps) <= 1
    assert plan.ramp_ns == len(clients) * (gaps.pop() if gaps else plan.ramp_ns // len(clients))
    flows = {flow.sender: flow for flow in plan.flows}
    alone = [session.connect_ns for session, _ in clients if session.endpoint not in flows]
    assert alone == [0]
    for session, spec in clients:
        assert spec["broker"] == "10.7.0.3"
        assert session.disconnect_ns == plan.ramp_ns + plan.hold_ns + plan.drain_ns
        if (flow := flows.get(session.endpoint)) is not None:
            assert session.connect_ns <= flow.start_ns <= flow.stop_ns == plan.ramp_ns + plan.hold_ns


def schedules_and_topics_are_permutations(plan: Plan) -> None:
    schedules = [f.schedule for f in plan.flows if f.name.endswith(".p") and f.schedule is not None]
    assert [s.index for s in schedules] == list(range(len(schedules)))
    assert {s.count for s in schedules} == {len(schedules)}
    assert len({s.seed for s in schedules}) == 1
    pairs = [f for f in plan.flows if f.name.endswith(".q")]
    sessions = {s.session.endpoint: s.session for n in plan.nodes for s in n.software if s.session}
    heard = {f.topic: plan.receivers[f.deliveries[0].receivers] for f in pairs}
    assert Counter(name for names in heard.values() for name in names) == Counter(f.sender for f in pairs)
    assert len(heard) == len(pairs)
    assert len({f.schedule.seed for f in pairs if f.schedule}) == len(pairs)
    for f in pairs:
        (receiver,) = heard[f.topic]
        connected = max(sessions[f.sender].connect_ns, sessions[receiver].connect_ns)
        assert f.start_ns == min(connected + 10**9, f.stop_ns)


def groups_count_out_and_steps_name_every_wire(plan: Plan) -> None:
    text = "".join(step.text for step in plan.steps if step.tool == "ip")
    for node in plan.nodes:
        for card in node.interfaces:
            assert f"link add name {card.port} " in text
            assert f" name {card.name} address {card.mac} " in text
            assert f"netns {node.netns}\n" in text
    impaired = sum(d.impairment.present for link in plan.links for d in (link.forward, link.reverse))
    assert sum(step.text.count(" root ") for step in plan.steps if step.tool == "tc") == impaired
    access = [link for link in plan.links if link.kind == "access"]
    groups = Counter(node.group for node in plan.nodes)
    assert sorted(
        Counter(node.group for link in access for node in plan.nodes if node.name == link.a).values()
    ) == (sorted(count for group, count in groups.items() if group[0] in "yz"))


def events_are_in_order_inside_their_phase_and_undone(plan: Plan) -> None:
    start = {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}
    times = [start[event.phase] + event.at_ns for event in plan.events]
    assert times == sorted(times)
    down = Counter(t for e in plan.events if e.action == "link-down" for t in e.targets)
    up = Counter(t for e in plan.events if e.action == "link-up" for t in e.targets)
    assert down == up and down["wan"] == 3
    names = {link.name for link in plan.links}
    assert all(set(event.targets) <= names for event in plan.events)


@given(plans())
@settings(deadline=None, max_examples=60)
def test_each_property_holds_of_every_plan(plan: Plan) -> None:
    """Checks all the properties above on each plan, because drawing and making a plan takes longer than
    checking it.
    """
    names_and_addresses_are_unique_and_fit(plan)
    clients_connect_one_after_another_subscribers_first(plan)
    schedules_and_topics_are_permutations(plan)
    groups_count_out_and_steps_name_every_wire(plan)
    events_are_in_order_inside_their_phase_and_undone(plan)


def test_a_full_subnet_is_planned_and_one_more_is_refused() -> None:
    text = "name: full\nsegments: {x: {subnet: 10.0.0.0/28}}\ngroups: {g: {count: %d, segment: x}}\n"
    plan = make_plan(parse("f", (text % 14).encode()))
    assert [node.interfaces[0].address for node in plan.nodes] == [f"10.0.0.{i}" for i in range(1, 15)]
    with pytest.raises(TopologyError, match="has 14 addresses for 15 interfaces"):
        parse("f", (text % 15).encode())


@pytest.mark.parametrize("lab", ["", "A", "a b", "../x", "a" * 41, "a.b", "-a", "a-"])
def test_lab_names_that_cannot_be(lab: str) -> None:
    text = b"name: n\nsegments: {x: {subnet: 10.0.0.0/28}}\nnodes: {g: {segment: x}}\n"
    with pytest.raises(TopologyError, match="a lab's name matches"):
        make_plan(parse("f", text), lab)


def test_a_template_that_fails_names_its_place() -> None:
    text = b"""name: n
segments: {x: {subnet: 10.0.0.0/28}}
nodes:
  g: {segment: x, software: {a: {command: "ping {{ addresses.nobody }}"}}}
"""
    with pytest.raises(
        TopologyError, match=r"f:4: nodes\.g\.software: a template fails on node g \(.*nobody"
    ):
        make_plan(parse("f", text))
