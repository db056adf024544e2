"""Tests sampled values in the plan: streams, subscribers, the content of a frame, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Payload, Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.registry import KINDS
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

PUBLISH = 'publish: {sv_id: "MU{index}", rate: 4800 /s, asdus: 2, vlan: 5, pcp: 6}'
FILE = f"""\
name: sv
segments: {{bay: {{subnet: 10.1.0.0/24}}, control: {{}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  relay: {{segment: control, software: {{in: {{sampled-values: {{subscribe: unit}}}}}}}}
  mute: {{segment: control}}
  far: {{segment: apart, software: {{out: {{sampled-values: {{publish: {{sv_id: FAR}}}}}}}}}}
  other: {{segment: control, software: {{out: {{sampled-values: {{publish: {{sv_id: OTHER}}}}}}}}}}
  router: {{segment: [bay, apart], forward: true}}
groups:
  unit:
    count: 2
    segment: bay
    software:
      mu:
        sampled-values: {{{PUBLISH}}}
links: {{way: {{between: [bay, control], both: {{delay: 1 ms}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "groups.unit.software.mu.sampled-values.publish"
TAKE = "nodes.relay.software.in.sampled-values"


def planned(old: str = "", new: str = "") -> Plan:
    return make_plan(parse("sv.yaml", FILE.replace(old, new, 1).encode()))


def test_a_stream_begins_with_a_second_and_a_frame_is_a_message() -> None:
    plan = planned()
    flow = next(flow for flow in plan.flows if flow.name == "unit2.mu")
    assert (flow.pattern, flow.payload) == ("stream", Payload("samples", 128))
    assert flow.start_ns % 10**9 == 0
    assert flow.schedule is not None and flow.schedule.arrivals == "together"
    assert [rate.per_s for rate in flow.schedule.rates] == [2400]
    (delivery,) = flow.deliveries
    assert plan.receivers[delivery.receivers] == ("relay",)
    assert not delivery.guarantee.lossless
    assert next(flow for flow in plan.flows if flow.sender == "other").deliveries == ()


def test_both_sides_are_told_the_same() -> None:
    plan = planned()
    software = {node.name: node.software[0] for node in plan.nodes if node.software}
    sent, (first, taken) = software["unit2"].spec["publish"], software["relay"].spec["subscribe"]
    assert sent["sv_id"] == "MU2" and first["sv_id"] == "MU1"
    assert sent["to"] == {"group": [1, 0x0C, 0xCD, 4, 0, 0], "appid": 0x4000, "tag": [5, 6]}
    for key in ("to", "sv_id", "conf_rev", "rate", "asdus"):
        assert taken[key] == sent[key]
    flow = next(flow for flow in plan.flows if flow.sender == "unit2")
    assert (plan.flows[taken["flow"]], taken["start_ns"]) == (flow, flow.start_ns)


def test_frames_with_the_tag_of_an_interface_come_by_it() -> None:
    tagged = "mute: {segment: control, vlan: 5, software: {in: {sampled-values: {subscribe: unit}}}}"
    text = FILE.replace("mute: {segment: control}", tagged)
    for where in ("relay: {segment: control", "other: {segment: control", "count: 2\n    segment: bay"):
        text = text.replace(where, f"{where}{',' if '{' in where else chr(10) + '   '} vlan: 5")
    text = text.replace("router: {segment: [bay, apart]", "router: {segment: [bay, apart], vlan: {bay: 5}")
    plan = make_plan(parse("sv.yaml", text.encode()))
    software = {node.name: node.software[0] for node in plan.nodes if node.software}
    assert {one["interface"] for one in software["mute"].spec["subscribe"]} == {"eth0.5"}
    assert software["unit1"].spec["publish"]["interface"] == "eth0"


def test_costs_are_those_of_the_frame() -> None:
    plan = planned()
    unit = next(node for node in plan.nodes if node.name == "unit1").software[0]
    ((_, size),) = KINDS[unit.kind].costs(unit, [f for f in plan.flows if f.sender == "unit1"]).packets
    # Lengths in bytes: Ethernet 14, tag 4, head 8, savPdu 3, noASDU 3, seqASDU 3; then twice: ASDU 2, svID 5,
    # smpCnt 4, confRev 6, smpSynch 3, sample 66.
    assert size == 14 + 4 + 8 + 3 + 3 + 3 + 2 * (2 + 5 + 4 + 6 + 3 + 66)


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (PUBLISH, "", "groups.unit.software.mu.sampled-values", "exactly one of the keys publish and sub"),
        ("asdus: 2", "appid: 0x3fff", f"{PLACE}.appid", '"0x3FFF": an APPID of IEC 61850-9-2 is from 0x4000'),
        ("asdus: 2", "appid: 4x", f"{PLACE}.appid", "is no APPID"),
        ("asdus: 2", 'destination: "01-0C-CD-01-00-00"', f"{PLACE}.destination", "begins with 01-0C-CD-04"),
        ("asdus: 2", 'destination: "01-00-5E-00-00-00"', f"{PLACE}.destination", "is no group address"),
        ("vlan: 5, ", "", f"{PLACE}.pcp", "is of a tag, and these frames have none"),
        ("vlan: 5", "vlan: 4095", f"{PLACE}.vlan", "4094"),
        ("4800 /s", "70000 /s", f"{PLACE}.rate", "smpCnt has 16 bits"),
        ("4800 /s", "10 /min", f"{PLACE}.rate", "whole samples of a second"),
        ("asdus: 2", "asdus: 7", f"{PLACE}.asdus", "do not fill whole frames"),
        ("asdus: 2", "asdus: 20", f"{PLACE}.asdus", "more than the MTU of bay, 1500; write less in a frame"),
        ("asdus: 2", "signals: 400", f"{PLACE}.signals", "more than the MTU of bay"),
        ("MU{index}", "MU", f"{PLACE}.sv_id", "is unit1's too, with APPID 0x4000"),
        ("MU{index}", "OTHER", f"{PLACE}.sv_id", "is other's too"),
        ("MU{index}", "MU{x}", f"{PLACE}.sv_id", "no placeholder is called {x}"),
        ("MU{index}", "M" * 35, f"{PLACE}.sv_id", "1 to 34 printable"),
        ("asdus: 2", "segment: control", f"{PLACE}.segment", "is no segment of this node"),
        ("subscribe: unit", "subscribe: unti", f"{TAKE}.subscribe", 'did you mean "unit"?'),
        ("subscribe: unit", "subscribe: mute", f"{TAKE}.subscribe", "no sampled-values software of mute pub"),
        ("subscribe: unit", "subscribe: [unit, far]", f"{TAKE}.subscribe[1]", "these frames pass no router"),
        ("subscribe: unit", "subscribe: relay", f"{TAKE}.subscribe", "subscribes to itself"),
    ],
)
def test_mistakes_are_refused_by_their_rule(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


def test_one_name_may_be_on_two_segments_that_a_router_joins() -> None:
    assert planned("FAR", "MU1")


def test_a_load_without_a_full_second_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"begin with a full second, and the load ends 1 s after"):
        planned("hold: 10 s", "hold: 200 ms")


def test_a_node_with_a_smaller_mtu_than_its_segment_is_refused() -> None:
    with pytest.raises(TopologyError, match="do not fit the MTU of eth0, 150 bytes"):
        planned("count: 2", "mtu: 150\n    count: 2")
