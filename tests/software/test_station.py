"""Tests stations in the plan: the settings of the program, the frames that it gets to forward, and mistakes
in files.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from mistakes import problems, refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

STATION = "station: {link: line, receive: {rate: 80 Mbit/s}, transmit: {rate: 90 Mbit/s}}"
FILE = f"""\
name: stacks
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  master:
    segment: lan
    vlan: 5
    software:
      stack:
        {STATION}
      ask: {{udp: {{to: slave, pcp: 6, request: {{size: 100 B, reply: 100 B, rate: 20 /s}}}}}}
  slave: {{segment: lan, vlan: 5, software: {{echo: {{udp: {{listen: 9000}}}}}}}}
links:
  line: {{between: [master, lan], both: {{rate: 100 Mbit/s}}}}
  far: {{between: [slave, lan], both: {{rate: 10 Mbit/s}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.master.software.stack.station"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("stacks.yaml", text.encode()))


def settings(text: str = FILE) -> dict[str, Any]:
    software = next(one for one in planned(text).nodes[0].software if one.name == "stack")
    assert software.process is not None
    return dict(json.loads(software.process.files[0].content))


def test_frames_of_both_ways_pass_the_station_and_come_back_with_a_mark() -> None:
    told = settings()
    device, mark = told["device"], f"{told['mark']:#x}"
    assert told["receive"]["algorithm"] == "strict" and told["receive"]["queues"] == [[6, 7]]
    assert (told["transmit"]["policy"], told["transmit"]["high"]) == ("when-empty", [6, 7])
    lines = told["filters"]
    for way, tap in (("ffff:fff2", f"rx-{device}"), ("ffff:fff3", f"tx-{device}")):
        added = [line for line in lines if line.startswith(f"filter add dev {device} parent {way}")]
        assert [f"handle {mark} fw action pass" in line for line in added] == [True, False], (
            "the marked first"
        )
        assert added[1].endswith(f"mirred egress redirect dev {tap}")
    (back,) = [line for line in lines if line.startswith(f"filter add dev rx-{device}")]
    assert f"skbedit mark {mark}" in back and back.endswith(f"mirred ingress redirect dev {device}")


def test_a_side_without_queues_diverts_nothing() -> None:
    told = settings(FILE.replace(", transmit: {rate: 90 Mbit/s}", ""))
    assert told["transmit"] is None
    assert not any("fff3" in line for line in told["filters"])


def test_a_station_serves_the_codes_that_it_orders_by() -> None:
    assert planned()
    refused(FILE, "pcp: 6", "pcp: 5", "nodes.master.software.ask.udp.pcp", "no queue of a link serves it")
    assert planned(
        FILE.replace("receive: {rate", "receive: {queues: [[6], [5]], rate").replace("pcp: 6", "pcp: 5")
    )


@pytest.mark.parametrize(
    ("now", "place", "rule"),
    [
        ("station: {link: line}", PLACE, "has no queues"),
        ("station: {link: line, receive: {rate: 0 bit/s}}", f"{PLACE}.receive.rate", "passes nothing"),
        (
            "station: {link: line, receive: {rate: 8 Mbit/s, queues: [[6, 7], [7]]}}",
            f"{PLACE}.receive.queues[1]",
            "belongs to another queue, too",
        ),
        (
            "station: {link: line, receive: {rate: 8 Mbit/s, queues: [[6], []]}}",
            f"{PLACE}.receive.queues[1]",
            "names no PCP",
        ),
        (
            "station: {link: line, receive: {rate: 8 Mbit/s, algorithm: d}}",
            f"{PLACE}.receive.algorithm",
            "d",
        ),
    ],
)
def test_mistakes(now: str, place: str, rule: str) -> None:
    refused(FILE, STATION, now, place, rule)


def test_two_stations_of_one_link() -> None:
    more = "ask: {udp"
    second = "more: {station: {link: line, receive: {rate: 8 Mbit/s}}}\n      ask: {udp"
    refused(FILE, more, second, "nodes.master.software.more.station.link", "another station of master")


def test_a_virtual_machine_has_a_stack_of_its_own() -> None:
    found = problems(FILE.replace("    vlan: 5\n", "    kind: vm\n", 1))
    assert any(f"{PLACE}: node master is a virtual machine, whose links queue" in one for one in found), found


@pytest.mark.parametrize(
    ("was", "now", "rule"),
    [
        ("link: line", "link: far", "link far does not end at this node; write one of line"),
        (
            "rate: 90 Mbit/s",
            "rate: 101 Mbit/s",
            "its hardware queue sends at 101 Mbit/s, and link line has 100 Mbit/s; lower `transmit.rate`",
        ),
    ],
)
def test_what_only_the_plan_sees(was: str, now: str, rule: str) -> None:
    with pytest.raises(TopologyError, match=rule):
        planned(FILE.replace(was, now, 1))
