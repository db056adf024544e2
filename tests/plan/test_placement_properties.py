"""Tests that every placement keeps constraints and capacity, places each node once, and is reproducible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.placement.demand import Demand
from orchestrator.plan.placement.grow import NoRoomError
from orchestrator.plan.placement.items import Item, Load, Problem, Room, cut
from orchestrator.plan.placement.place import place
from orchestrator.plan.placement.refine import refined
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, list[str]]:
    hosts, count = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    rooms = [
        Room(
            f"h{n}",
            draw(st.none() | st.integers(1, 8)),
            None,
            draw(st.none() | st.integers(10, 60)),
            draw(st.integers(4, 30)),
            count / hosts,
        )
        for n in range(hosts)
    ]
    items = [
        Item(
            Demand(draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])), 0.0, draw(st.integers(0, 4)), 1.0),
            {"lan": draw(st.integers(0, 2))},
            draw(st.none() | st.lists(st.integers(0, hosts - 1), min_size=1, unique=True).map(tuple)),
            draw(st.dictionaries(st.integers(0, 1), st.integers(0, 2), max_size=1)),
        )
        for _ in range(count)
    ]
    near: list[dict[int, float]] = [{} for _ in items]
    for _ in range(draw(st.integers(0, 2 * count))):
        a, b = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if a != b:
            near[a][b] = near[b][a] = float(draw(st.integers(1, 1000)))
    families = [f"f{draw(st.integers(0, 3))}" for _ in items]
    return Problem(items, rooms, near), families


@given(problems())
@settings(deadline=None, max_examples=100)
def test_constraints_and_room_are_kept_and_it_repeats(made: tuple[Problem, list[str]]) -> None:
    problem, families = made
    try:
        where = place(problem, families)
    except NoRoomError as error:
        lacks = [load.lack(problem.items[error.item]) for load in error.loads]
        assert all(lacks), "refused, and a host has room"
        return
    assert len(where) == len(problem.items)
    loads = [Load(number, room) for number, room in enumerate(problem.rooms)]
    for item, host in zip(problem.items, where, strict=True):
        assert loads[host].lack(item) == ""
        loads[host].add(item)
    assert place(problem, families) == where
    assert cut(problem, refined(problem, where)) <= cut(problem, where)


TEXT = """\
name: generated
hosts:
{hosts}
underlay: {{oversize: {oversize}}}
segments:
  near: {{subnet: 10.7.0.0/21}}
  far: {{}}
  air: {{subnet: 10.8.0.0/24, duplex: half, medium: {medium}}}
nodes:
  broker: {{segment: far, software: {{m: {{broker: mosquitto}}}}, host: h0}}
  friend: {{segment: [near, air], near: broker}}
  enemy: {{segment: air, apart: {enemies}}}
  r1: {{}}
  r2: {{kind: vm, apart: r1}}
  r3: {{}}
groups:
  a:
    count: {count}
    segment: near
    software: {{p: {{mqtt: {{broker: broker, publish: {{topic: t, rate: 5 /s}}}}}}}}
  b: {{count: {others}, segment: far, apart: {apart}}}
links:
  wan: {{between: [near, far], both: {{delay: 5 ms}}}}
  own: {{between: [b, far], forward: {{loss: 1 %}}}}
  w12: {{between: [r1, r2], both: {{delay: 1 ms}}}}
  w13: {{between: [r1, r3]}}
captures: {{all: {{at: segment near}}, one: {{at: link w12}}, other: {{at: node broker}}}}
run: {{connect_interval: 10 ms, hold: 5 s, drain: 1 s}}
"""


@st.composite
def topologies(draw: st.DrawFn) -> str:
    count = draw(st.integers(2, 4))
    hosts = [f"  h{n}: {{machine: ssh://h{n}, cores: {draw(st.integers(1, 8))}}}" for n in range(count)]
    apart = draw(st.booleans())
    return TEXT.format(
        hosts="\n".join(hosts),
        oversize=draw(st.sampled_from(["fragment", "lower"])),
        medium="{rate: 1 Mbit/s}",
        enemies="[r1, r3]" if draw(st.booleans()) else "[]",
        count=draw(st.integers(1, 60)),
        others=draw(st.integers(2, count)) if apart else draw(st.integers(1, 20)),
        apart="true" if apart else "[]",
    )


@given(topologies())
@settings(deadline=None, max_examples=15)
def test_every_part_of_a_plan_stands_on_a_host(text: str) -> None:
    plan = make_plan(parse("generated.yaml", text.encode()))
    assert plan == make_plan(parse("generated.yaml", text.encode()))
    assert from_json(Plan, to_json(plan)) == plan
    hosts, at = [host.name for host in plan.hosts], {node.name: node.host for node in plan.nodes}
    assert set(at.values()) <= set(hosts) and at["broker"] == at["friend"] == at["enemy"] == "h0"
    assert at["r1"] != at["r2"]
    if "count: " in text and "apart: true" in text:
        assert max(Counter(node.host for node in plan.nodes if node.group == "b").values()) == 1
    _segments_have_their_tunnels(plan, at)
    _links_stand_with_their_ends(plan, at)
    _steps_make_what_each_host_has(plan)


def _segments_have_their_tunnels(plan: Plan, at: dict[str, str]) -> None:
    ends = {tunnel.segment: tunnel.ends for tunnel in plan.tunnels}
    on: dict[str, set[str]] = {segment.name: set() for segment in plan.segments}
    for node in plan.nodes:
        for card in node.interfaces:
            on.setdefault(card.segment, set()).add(at[node.name])
    for link in plan.links:
        if link.kind == "segments":
            on[link.a].add(link.forward.host)
            on[link.b].add(link.forward.host)
    wide = {name: hosts for name, hosts in on.items() if len(hosts) > 1}
    assert {name: set(hosts) for name, hosts in ends.items()} == wide
    assert all(len(set(hosts)) == len(hosts) for hosts in ends.values())
    names = [tunnel.device for tunnel in plan.tunnels]
    ports = [card.port for node in plan.nodes for card in node.interfaces]
    assert len({*names, *ports}) == len(names) + len([p for p in ports if p]) + ("" in ports)
    assert len({tunnel.vni for tunnel in plan.tunnels}) == len(names)
    assert all(0 < tunnel.vni < 1 << 24 and len(tunnel.device) <= 15 for tunnel in plan.tunnels)
    if "lowered" in " ".join(note.text for note in plan.notes):
        assert all(tunnel.mtu <= 1450 for tunnel in plan.tunnels)


def _links_stand_with_their_ends(plan: Plan, at: dict[str, str]) -> None:
    for link in plan.links:
        ways = link.forward, link.reverse
        if link.kind in ("access", "nodes"):
            assert link.forward.host == at[link.a]
        if link.kind == "nodes":
            assert [way.host for way in ways] == [at[link.a], at[link.b]]
        else:
            assert len({host for way in ways for host in (way.host, way.far_host)}) == 1
    assert all(capture.host for capture in plan.captures)


def _steps_make_what_each_host_has(plan: Plan) -> None:
    made: dict[str, str] = {host.name: "" for host in plan.hosts}
    for step in plan.steps:
        made[step.host] += step.text
    tunnels = {(end, tunnel.segment): tunnel for tunnel in plan.tunnels for end in tunnel.ends}
    for node in plan.nodes:
        for card in node.interfaces:
            assert f"{card.mac} " in made[node.host] or node.vm is not None
            if (tunnel := tunnels.get((node.host, card.segment))) is not None:
                assert f"link add name {tunnel.bridge} " in made[node.host]
    macs = [line.split(" address ")[1].split()[0] for text in made.values() for line in text.splitlines()
            if line.startswith("link add name") and " type bridge" in line]  # fmt: skip
    assert len(set(macs)) == len(macs), "bridges of one lab have hardware addresses of their own"


def test_what_fits_nowhere_says_what_each_host_lacks() -> None:
    text = """name: full
hosts: {a: {machine: local, memory: 1 GB}, b: {machine: ssh://b, cores: 1, memory: 8 GB}}
segments: {lan: {subnet: 10.0.0.0/24}}
nodes:
  big: {kind: vm, segment: lan, memory: 4 GB, cpu_reserve: 2 cores}
"""
    with pytest.raises(TopologyError) as caught:
        make_plan(parse("full.yaml", text.encode()))
    said = str(caught.value)
    assert said.startswith(
        "full.yaml:5: nodes.big: big: fits on no host beside the others (it needs 4.05 GB, 2 cores"
    )
    assert "a: " in said and "MiB more than its memory" in said
    assert "b: 1 more cores reserved than it has" in said and said.endswith(
        "; name more hosts, or ask less of them"
    )
