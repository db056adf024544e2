"""Tests bulk transfers in the plan: greedy or paced, their times, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

LOAD = "bulk: {to: sink, congestion: reno, start: hold + 5 s, for: 10 s}"
FILE = f"""\
name: bulk
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}}}
nodes:
  sink: {{segment: far, software: {{in: {{bulk: {{listen: 5201}}}}}}}}
  source:
    segment: near
    software:
      load:
        {LOAD}
groups:
  many: {{count: 2, segment: far, software: {{in: {{bulk: {{listen: 5201}}}}}}}}
links: {{way: {{between: [near, far], both: {{delay: 10 ms, rate: 8 Mbit/s}}}}}}
captures: {{all: {{at: node sink, snaplen: 128}}}}
run: {{hold: 20 s}}
"""
PLACE = "nodes.source.software.load.bulk"


def planned(new: str = LOAD) -> Plan:
    return make_plan(parse("bulk.yaml", FILE.replace(LOAD, new).encode()))


def test_a_greedy_transfer_has_no_schedule_and_its_time() -> None:
    plan = planned()
    (flow,) = plan.flows
    begin = plan.ramp_ns + 5 * 10**9
    assert (flow.schedule, flow.start_ns, flow.stop_ns) == (None, begin, begin + 10 * 10**9)
    assert (flow.pattern, flow.traffic_class, flow.payload.bytes) == ("stream", "source.load", 1448)
    assert plan.receivers[flow.deliveries[0].receivers] == ("sink",)
    spec = plan.nodes[1].software[0].spec
    assert spec["to"] == [{"endpoint": "sink", "address": "10.1.0.1", "port": 5201}]
    assert (spec["protocol"], spec["congestion"], spec["streams"], spec["rate_bps"]) == (
        "tcp",
        "reno",
        1,
        None,
    )
    assert (spec["start_ns"], spec["stop_ns"]) == (flow.start_ns, flow.stop_ns)


def test_by_default_it_lasts_the_whole_hold() -> None:
    plan = planned("bulk: {to: sink}")
    (flow,) = plan.flows
    assert (flow.start_ns, flow.stop_ns) == (plan.ramp_ns, plan.ramp_ns + plan.hold_ns)


def test_udp_has_datagrams_of_a_size_and_a_rate() -> None:
    spec = planned("bulk: {to: sink, protocol: udp, rate: 1 Mbit/s, size: 200 B}").nodes[1].software[0].spec
    assert (spec["protocol"], spec["rate_bps"], spec["size"]) == ("udp", 10**6, 200)


def test_a_greedy_transfer_is_reckoned_with_the_rate_of_the_way() -> None:
    # 10 s at 8 Mbit/s are 10 MB in 6,906 segments; the pcap has 128 + 16 bytes of each, and 66 + 16 of each
    # acknowledgement.
    (size,) = [p.value for p in planned().predictions if p.name == "capture size"]
    assert size == pytest.approx(6906 * (144 + 82), rel=0.001)


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("bulk: {listen: 5201, streams: 2}", ".streams", "does not belong to the side that listens"),
        ("bulk: {listen: 5201, for: 2 s}", ".for", "does not belong to the side that listens"),
        ("bulk: {to: source}", ".to", "a flow to itself"),
        ("bulk: {to: many}", ".to", "a transfer has one receiver"),
        ("bulk: {to: [sink, many1]}", ".to", "a transfer has one receiver"),
        ("bulk: {to: sink, protocol: udp}", "", "no congestion control that would find a rate"),
        ("bulk: {to: sink, protocol: udp, rate: 1 Mbit/s, congestion: cubic}", ".congestion", "udp has none"),
        ("bulk: {to: sink, protocol: udp, rate: 1 Mbit/s, size: 20 B}", ".size", "from 28 to 65507 bytes"),
        ("bulk: {to: sink, size: 1 kB}", ".size", "is of udp"),
        ("bulk: {to: sink, rate: 0 bit/s}", ".rate", "must be more than zero"),
        ("bulk: {to: sink, volume: 0 B}", ".volume", "is nothing at all"),
        ("bulk: {to: sink, window: 10 us}", ".window", "is less than 1 ms"),
        ("bulk: {to: sink, streams: 128, window: 1 ms}", ".window", "and 100000 are allowed"),
        ("bulk: {to: sink, protocol: udp, rate: 1 Mbit/s, window: 1 s}", ".window", "is of tcp"),
        ("bulk: {listen: 5201, window: 1 s}", ".window", "does not belong to the side that listens"),
        ("bulk: {to: sink, for: 0 s}", ".for", "is not above zero"),
        ("bulk: {to: sink, start: hold + 20 s}", ".start", "is after the end of the load"),
        ("bulk: {to: sink, start: hold + 15 s, for: 6 s}", ".for", "ends 1 s after the load"),
        ("bulk: {to: sink, streams: 0}", ".streams", "at least 1"),
        ("bulk: {to: sink, protocol: sctp}", ".protocol", "not one of the values"),
    ],
)
def test_mistakes_are_refused_by_their_rule(new: str, place: str, rule: str) -> None:
    refused(FILE, LOAD, new, f"{PLACE}{place}", rule)
