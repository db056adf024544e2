"""Tests gateways and their broker in the plan: the settings of each program, and mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FLOW = "pmu: {service: high-real-time, group: a, minimum: 40 kbit/s, upstream: edge}"
FILE = f"""\
name: grid
segments: {{a: {{subnet: 10.1.1.0/24}}, control: {{subnet: 10.1.2.0/24}}}}
nodes:
  sensor:
    segment: a
    software:
      send: {{udp: {{to: center, rate_limits_from: {{listen: 7101, flow: pmu}}, push: {{size: 100 B, rate: 20 /s}}}}}}
  edge:
    segment: a
    forward: true
    software:
      gateway:
        gateway:
          link: up
          flows: {{pmu: {{service: high-real-time, group: a, minimum: 40 kbit/s, upstream: sensor}}}}
  router:
    segment: control
    forward: true
    software:
      gateway:
        gateway:
          link: wan
          broker: center
          listen: 7105
          flows:
            {FLOW}
  far: {{forward: true, segment: control}}
  center: {{segment: control, software: {{broker: {{reservations: {{response: 5 s}}}}, take: {{udp: {{listen: 9000}}}}}}}}
links:
  up: {{between: [edge, router], both: {{rate: 1 Mbit/s, queue: {{htb: {{pmu: {{port: 9000, rate: 50 kbit/s}}, rest: {{rate: 9 kbit/s}}}}}}}}}}
  wan: {{between: [far, router], both: {{rate: 1 Mbit/s, queue: {{htb: {{rest: {{rate: 9 kbit/s}}, pmu: {{port: 9000, rate: 50 kbit/s}}}}}}}}}}
run: {{hold: 10 s}}
"""  # noqa: E501
PLACE = "nodes.router.software.gateway.gateway"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("grid.yaml", text.encode()))


def settings(plan: Plan, node: str) -> Any:
    software = next(n for n in plan.nodes if n.name == node).software[0]
    assert software.process is not None
    return json.loads(software.process.files[0].content)


def test_a_gateway_governs_the_end_of_its_link_that_is_its_nodes() -> None:
    told = settings(planned(), "router")
    assert told["device"] == "eth2"
    (flow,) = told["flows"]
    assert (flow["name"], flow["place"], flow["minimum_bps"]) == ("pmu", 1, 40_000)
    assert flow["upstream"].endswith(":7100"), "the gateway of edge"
    assert told["broker"] == "10.1.2.3:7200"


def test_the_last_one_tells_the_sender() -> None:
    plan = planned()
    (flow,) = settings(plan, "edge")["flows"]
    assert flow["upstream"] == "10.1.1.1:7101"
    (sensor,) = plan.nodes[0].software
    assert sensor.spec["rate_limits_from"] == {"port": 7101, "name": "pmu"}


def test_a_broker_knows_who_calls_on_it() -> None:
    told = settings(planned(), "center")
    assert told["response_ns"] == 5 * 10**9
    assert told["gateways"] == {
        "router-gateway": {"at": "10.1.2.1:7105", "rate_bps": 991_000, "reserved_bps": {"pmu": 50_000}}
    }


def test_the_moments_of_measuring_are_drawn_by_the_seed() -> None:
    one, two = (
        settings(make_plan(parse("grid.yaml", FILE.encode()), seed=seed), "router")["phase_ns"]
        for seed in (1, 2)
    )
    assert one != two and 0 < one <= 10**9


def test_an_overlay_takes_the_packets_of_its_class_before_they_queue() -> None:
    shares = "rate: 50 kbit/s, ceil: 50 kbit/s, limit: 20}}}}}\nrun"
    overlay = "overlay: {late: drop, flows: [{port: 9000, deadline: 40 ms}]}, upstream: edge}"
    text = FILE.replace("rate: 50 kbit/s}}}}}\nrun", shares).replace("upstream: edge}", overlay)
    told = settings(planned(text), "router")
    assert told["flows"][0]["shared"] == {
        "order": "edf",
        "drops_late": True,
        "limit": 20,
        "deadlines_ns": {"9000": 40 * 10**6},
    }
    assert told["overlay"]["tap"] == "via-eth2"
    first, second, *filters = told["overlay"]["filters"]
    assert first == "qdisc replace dev eth2 clsact" and second.startswith("filter del dev eth2 parent")
    assert len(filters) == 8, "TCP and UDP, from and to the port, with a tag and without"
    assert all(line.endswith("action mirred egress redirect dev via-eth2") for line in filters)
    assert settings(planned(), "router")["overlay"] is None


MOST = "minimum: 40 kbit/s, maximum: 60 kbit/s, upstream: edge}"
ENDS = "rate: 50 kbit/s}}}}}\nrun"
CAPPED = ENDS.replace("50 kbit/s", "50 kbit/s, ceil: 50 kbit/s")
TAKE = "take: {udp: {listen: 9000"
WANTS = (
    "wants: {gateway: router, flow: pmu, rates: [{from: hold + 2 s, rate: 60 kbit/s}, "
    "{from: hold + 5 s, rate: 0 bit/s}]}"
)
EARLY = "upstream: edge, overlay: {red: {RED}, flows: [{port: 9000, deadline: 1 ms}]}}"


def test_a_flow_has_a_maximum_where_the_file_gives_one() -> None:
    assert "maximum_bps" not in settings(planned(), "router")["flows"][0]
    text = FILE.replace("minimum: 40 kbit/s, upstream: edge}", MOST).replace(ENDS, CAPPED)
    assert settings(planned(text), "router")["flows"][0]["maximum_bps"] == 60_000


def test_a_receiver_tells_a_gateway_which_rate_it_wants() -> None:
    plan = planned(FILE.replace(TAKE, f"{TAKE}, {WANTS}"))
    (take,) = [one for node in plan.nodes for one in node.software if one.name == "take"]
    hold_ns = take.spec["wants"]["steps"][0]["from_ns"] - 2 * 10**9
    assert take.spec["wants"] == {
        "gateway": "10.1.2.1:7105",
        "name": "pmu",
        "steps": [
            {"from_ns": hold_ns + 2 * 10**9, "bps": 60_000},
            {"from_ns": hold_ns + 5 * 10**9, "bps": 0},
        ],
    }
    assert hold_ns >= 0
    assert "wants" not in next(s for n in planned().nodes for s in n.software if s.name == "take").spec


def test_an_overlay_drops_early_by_the_seed_of_its_flow() -> None:
    shares = "rate: 50 kbit/s, ceil: 50 kbit/s, limit: 200}}}}}\nrun"
    overlay = EARLY.replace("RED", "min: 5, max: 15")
    text = FILE.replace("rate: 50 kbit/s}}}}}\nrun", shares).replace("upstream: edge}", overlay)
    one, two = (
        settings(make_plan(parse("grid.yaml", text.encode()), seed=seed), "router") for seed in (1, 2)
    )
    red = one["flows"][0]["shared"]["red"]
    assert (red["min_packets"], red["max_packets"], red["probability"], red["weight"]) == (5, 15, 0.1, 0.02)
    assert red["seed"] != two["flows"][0]["shared"]["red"]["seed"]


def test_only_a_high_real_time_flow_can_be_wanted() -> None:
    low = FILE.replace(FLOW, FLOW.replace("high-real-time", "low-real-time"))
    rule = "is low-real-time at router, and shares move for high-real-time flows alone"
    refused(low, TAKE, f"{TAKE}, {WANTS}", "nodes.center.software.take.udp.wants.flow", rule)


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        (
            "minimum: 40 kbit/s, upstream: edge}",
            "minimum: 40 kbit/s, maximum: 30 kbit/s, upstream: edge}",
            f"{PLACE}.flows.pmu.maximum",
            "is below `minimum`",
        ),
        (
            "upstream: edge}",
            EARLY.replace("RED", "min: 9, max: 9"),
            f"{PLACE}.flows.pmu.overlay.red.min",
            "is not above 0 and below max, 9",
        ),
        (
            "upstream: edge}",
            EARLY.replace("RED", "min: 3, max: 9, weight: 0 %"),
            f"{PLACE}.flows.pmu.overlay.red.weight",
            "is not above 0",
        ),
        (
            TAKE,
            f"{TAKE}, {WANTS.replace('router', 'nowhere')}",
            "nodes.center.software.take.udp.wants.gateway",
            "no node is called that",
        ),
        (
            TAKE,
            f"{TAKE}, {WANTS.replace('router', 'far')}",
            "nodes.center.software.take.udp.wants.gateway",
            "no gateway of far has the flow pmu",
        ),
        (
            TAKE,
            f"{TAKE}, {WANTS.replace('flow: pmu', 'flow: pmx')}",
            "nodes.center.software.take.udp.wants.flow",
            "no gateway of router has the flow pmx",
        ),
        (
            TAKE,
            f"{TAKE}, {WANTS.replace('hold + 5 s', 'hold + 1 s')}",
            "nodes.center.software.take.udp.wants.rates[1].from",
            "goes back in time",
        ),
        (
            "udp: {to: center,",
            f"udp: {{to: center, {WANTS},",
            "nodes.sensor.software.send.udp.wants",
            "does not belong to the side that sends",
        ),
        ("far: {forward: true", "far: {software: {g: {gateway: {link: wan, flows: {x: {service: best-effort, "
         "group: a, minimum: 1 kbit/s}}}}}", "nodes.far.software.g.gateway", "node far does not forward"),
        ("broker: center", "broker: nowhere", f"{PLACE}.broker", "no node is called that"),
        (
            "  far: {forward: true, segment",
            "      more: {gateway: {link: wan, listen: 7106, flows: {pmu: {service: best-effort, group: a, "
            "minimum: 1 kbit/s}}}}\n  far: {forward: true, segment",
            "nodes.router.software.more.gateway.link",
            "another gateway of router governs this link, too",
        ),
        ("broker: center", "period: 1 ms", f"{PLACE}.period", "is at least 10 ms"),
        ("broker: center", "weight: 0 %", f"{PLACE}.weight", "leaves the first estimate"),
        (
            "minimum: 40 kbit/s, upstream: sensor",
            "minimum: 40 kbit/s, upstream: router",
            "nodes.edge.software.gateway.gateway.flows.pmu.upstream",
            "router is upstream of edge, and edge of router",
        ),
        (
            "take: {udp: {listen: 9000",
            "take: {udp: {listen: 9000, rate_limits_from: {listen: 1, flow: pmu}",
            "nodes.center.software.take.udp.rate_limits_from",
            "does not belong to the side that listens",
        ),
    ],
)  # fmt: skip
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


@pytest.mark.parametrize(
    ("was", "now", "rule"),
    [
        ("link: wan", "link: up2", "link up2 does not end at this node; write one of up, wan"),
        (FLOW, FLOW.replace("pmu", "pmx"), "flow pmx has no class on link wan; write one of rest, pmu"),
        (
            FLOW,
            FLOW.replace("40 kbit/s", "60 kbit/s"),
            "minimum 60 kbit/s is above its class's rate, 50 kbit/s",
        ),
        (
            FLOW,
            FLOW.replace("upstream: edge", "upstream: far"),
            "flow pmu: far has no gateway or sender for it",
        ),
        (
            "minimum: 40 kbit/s, upstream: edge}",
            MOST,
            "maximum 60 kbit/s is below its class's ceiling, 1 Mbit/s",
        ),
        ("broker: center", "broker: edge", "broker edge keeps no reservations"),
        (
            "upstream: edge}",
            "overlay: {flows: [{port: 9001, deadline: 1 ms}]}}",
            "an overlay has one deadline for each port of its class, 9000; write each of them once",
        ),
        (
            "upstream: edge}",
            "overlay: {flows: [{port: 9000, deadline: 1 ms}]}}",
            "borrows nothing; give the class a `ceil` equal to its `rate`",
        ),
        (
            "wan: {between: [far, router], both: {rate: 1 Mbit/s, queue: {htb: {rest: {rate: 9 kbit/s}, "
            "pmu: {port: 9000, rate: 50 kbit/s}}}}}",
            "wan: {between: [far, router], both: {rate: 1 Mbit/s}}",
            "link wan has no HTB from this node",
        ),
    ],
)
def test_what_only_the_plan_sees(was: str, now: str, rule: str) -> None:
    assert was in FILE
    with pytest.raises(TopologyError, match=rule):
        planned(FILE.replace(was, now))
