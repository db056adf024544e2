"""Tests synchrophasor stations and their clients in the plan: numbers, flows, mistakes."""

from __future__ import annotations

import pytest
from mistakes import problems, refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.kind import Offered
from orchestrator.software.synchrophasor import KIND
from orchestrator.topology.loading import parse

FILE = """\
name: phasors
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  bay:
    segment: lan
    software: {pmu: {synchrophasor: {listen: 4712, phasors: 6, analogs: 2, data: {rate: 50 /s}}}}
  far: {segment: lan, software: {pmu: {synchrophasor: {listen: 4712, idcode: 7, data: {rate: 10 /s}}}}}
  centre: {segment: lan, software: {pdc: {synchrophasor: {to: [bay, far]}}}}
run: {hold: 10 s}
"""
PDC = "nodes.centre.software.pdc.synchrophasor"
BAY = "nodes.bay.software.pmu.synchrophasor"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("phasors.yaml", text.encode()))


def test_a_stations_flow_is_as_long_as_its_frames_and_goes_to_who_asks() -> None:
    plan = planned()
    assert [(flow.sender, flow.payload.bytes) for flow in plan.flows] == [("bay", 86), ("far", 78)]
    sets = [plan.receivers[d.receivers] for flow in plan.flows for d in flow.deliveries]
    assert sets == [("centre",), ("centre",)]


def test_who_asks_is_told_which_flow_is_whose() -> None:
    (centre,) = (node for node in planned().nodes if node.name == "centre")
    (pdc,) = centre.software
    assert [(one["endpoint"], one["idcode"], one["flow"]) for one in pdc.spec["to"]] == [
        ("bay", 1, 0),
        ("far", 7, 1),
    ]


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        ("to: [bay, far]", "to: [bay, far], phasors: 3", f"{PDC}.phasors", "belongs to a station"),
        (", data: {rate: 50 /s}", "", BAY, "does not say how often"),
        ("rate: 50 /s", "rate: 40000 /s", f"{BAY}.data.rate[0].rate", "more than a configuration frame"),
        ("to: [bay, far]", "to: [bay, centre]", f"{PDC}.to[1]", "a flow to itself"),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


@pytest.mark.parametrize(
    ("more", "rule"),
    [("idcode: 7", "have the IDCODE 7 both"), ("transport: udp", "speak by TCP and some by UDP")],
)
def test_stations_that_cannot_be_asked_together(more: str, rule: str) -> None:
    found = problems(FILE.replace("analogs: 2", more))
    assert any(f"{PDC}.to: " in one and rule in one for one in found), found


def test_a_station_over_udp_offers_its_frames_and_tcp_nothing() -> None:
    for more, offered in (("", "TCP decides when its packets leave"), (", transport: udp", Offered(8 + 78))):
        plan = planned(FILE.replace("to: [bay, far]", "to: far").replace("idcode: 7", f"idcode: 7{more}"))
        flow = next(flow for flow in plan.flows if flow.sender == "far")
        (station,) = next(node for node in plan.nodes if node.name == "far").software
        assert KIND.offers(station, flow) == offered
