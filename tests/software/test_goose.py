"""Tests GOOSE in the plan: events, subscribers, the retransmission curve, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Payload, Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

MS = 10**6
PUBLISH = "publish: {rate: 2 /s, rate_of: client, vlan: 0, entries: 3, retransmit: [2 ms, 4 ms], stable: 2 s}"
FILE = f"""\
name: goose
segments: {{bay: {{subnet: 10.1.0.0/24}}, apart: {{subnet: 10.2.0.0/24}}}}
nodes:
  relay: {{segment: bay, software: {{in: {{goose: {{subscribe: [ied, far]}}}}}}}}
  far: {{segment: [apart, bay], software: {{out: {{goose: {{publish: {{segment: bay, rate: 1 /s}}}}}}}}}}
  router: {{segment: [bay, apart], forward: true}}
groups:
  ied: {{count: 2, segment: bay, software: {{g: {{goose: {{{PUBLISH}}}}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "groups.ied.software.g.goose.publish"


def planned() -> Plan:
    return make_plan(parse("goose.yaml", FILE.encode()))


def test_an_event_is_a_message_and_its_curve_is_the_agent_s() -> None:
    plan = planned()
    flow = next(flow for flow in plan.flows if flow.name == "ied2.g")
    assert (flow.pattern, flow.payload) == ("push", Payload("dataset", 24))
    assert plan.receivers[flow.deliveries[0].receivers] == ("relay",)
    software = {node.name: node.software[0] for node in plan.nodes if node.software}
    sent, taken = software["ied2"].spec["publish"], software["relay"].spec["subscribe"]
    assert (sent["gocb_ref"], sent["dat_set"], sent["go_id"]) == (
        "ied2/LLN0$GO$events",
        "ied2/LLN0$events",
        "ied2",
    )
    assert sent["to"] == {"group": [1, 0x0C, 0xCD, 1, 0, 0], "appid": 1, "tag": [0, 4]}
    assert (sent["retransmit_ns"], sent["stable_ns"]) == ([2 * MS, 4 * MS], 2000 * MS)
    assert [one["publisher"] for one in taken] == ["ied1", "ied2", "far"]
    assert plan.flows[taken[1]["flow"]] == flow
    assert software["far"].spec["publish"]["interface"] == "eth1"


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("vlan: 0", "appid: 0x4000", f"{PLACE}.appid", "an APPID of IEC 61850-8-1 is from 0x0000 to 0x3FFF"),
        ("vlan: 0", "pcp: 3", f"{PLACE}.pcp", "is of a tag"),
        ("vlan: 0", 'destination: "01-0C-CD-04-00-00"', f"{PLACE}.destination", "begins with 01-0C-CD-01"),
        ("vlan: 0", "gocb_ref: same", f"{PLACE}.gocb_ref", "is ied1's too, with APPID 0x0001"),
        ("vlan: 0", "burst: 2", f"{PLACE}.burst", "only the last change would be visible"),
        ("vlan: 0", "time_allowed_to_live: 2 s", f"{PLACE}.time_allowed_to_live", "longest wait, 2 s"),
        ("vlan: 0", "time_allowed_to_live: 3.0005 s", f"{PLACE}.time_allowed_to_live", "whole milliseconds"),
        ("2 ms", "0 ms", f"{PLACE}.retransmit[0]", "is not above zero"),
        ("entries: 3", "entries: 190", f"{PLACE}.entries", "more than the MTU of bay, 1500"),
        ("rate: 2 /s", "rate: 0 /s", f"{PLACE}.rate", "must be more than zero"),
        ("segment: bay", "segment: apart", "nodes.relay.software.in.goose.subscribe[0]", "pass no router"),
    ],
)
def test_mistakes_are_refused_by_their_rule(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)
