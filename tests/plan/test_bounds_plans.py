"""Tests the bounds of whole topology files: the queue, the frame sizes and the flows from which they are
computed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import vnet
from orchestrator.plan.bounds.report import FlowBound, bounds_of
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: bounds
segments: {near: {subnet: 10.1.0.0/24}, far: {subnet: 10.1.0.0/24}}
nodes:
  sink: {segment: far, software: {in: {udp: {listen: 9000}}, files: {bulk: {listen: 5201}}}}
  other: {segment: near, software: {out: {bulk: {to: sink, OTHER}}}}
groups:
  meter: {count: 3, segment: near, software: {out: {udp: {to: sink, dscp: EF, SENDS}}}}
links: {way: {between: [near, far], both: {WAY}}}
run: {hold: 60 s}
"""
PUSH = "push: {size: 958 B, rate: 30 /s, rate_of: client, deadline: 40 ms}"  # 1,000 B on the wire
FIFO = "rate: 1 Mbit/s, delay: 10 ms"
PRIO = "rate: 1 Mbit/s, delay: 10 ms, queue: {prio: {first: {dscp: EF}, rest: {}}}"
PACED = "protocol: udp, rate: 100 kbit/s, size: 958 B"
GREEDY = "protocol: tcp"


def bounds(way: str, sends: str = PUSH, other: str = PACED, machine_bps: int = 0) -> dict[str, FlowBound]:
    file = FILE if "dscp" in way else FILE.replace("dscp: EF, ", "")
    text = file.replace("OTHER", other).replace("SENDS", sends).replace("WAY", way)
    plan = make_plan(parse("bounds.yaml", text.encode()))
    return {one.flow.name: one for one in bounds_of(plan, machine_bps).flows}


def worst_ms(one: FlowBound) -> float:
    assert one.bound.worst_s is not None, one.bound.why
    return one.bound.worst_s * 1e3


def test_first_in_first_out_waits_for_one_message_of_each() -> None:
    found = bounds(FIFO)  # the bound covers 4 messages of 1,000 B at 1 Mbit/s
    assert worst_ms(found["meter1.out"]) == pytest.approx(10 + 4 * 8)
    assert found["meter1.out"].late
    assert found["meter1.out"].bound.least_s == pytest.approx(10e-3)


def test_without_a_link_on_the_way_there_is_none() -> None:
    file = FILE.replace("segment: near", "segment: far").replace(
        "links: {way: {between: [near, far], both: {WAY}}}\n", ""
    )
    text = (
        file.replace("dscp: EF, SENDS", PUSH)
        .replace("OTHER", PACED)
        .replace("near: {subnet: 10.1.0.0/24}, ", "")
    )
    plan = make_plan(parse("bounds.yaml", text.encode()))
    for one in bounds_of(plan).flows:
        assert one.bound.worst_s is None and "no link is on its way" in one.bound.why
    with_time = {one.flow.name: one for one in bounds_of(plan, node_ns=100_000).flows}
    assert worst_ms(with_time["meter1.out"]) == pytest.approx(0.2)


def test_priority_waits_for_one_frame_of_others_and_survives_a_greedy_one() -> None:
    for other in (PACED, GREEDY):
        found = bounds(PRIO, other=other)
        assert worst_ms(found["meter1.out"]) == pytest.approx(10 + 3 * 8 + 1518 * 8e-3, abs=0.2)
    assert "TCP" in found["other.out"].bound.why
    assert "other.out, which has no bound" in bounds(FIFO, other=GREEDY)["meter1.out"].bound.why


def test_a_class_gets_what_it_is_guaranteed() -> None:
    way = "rate: 1 Mbit/s, queue: {htb: {first: {dscp: EF, rate: 800 kbit/s}, rest: {rate: 200 kbit/s}}}"
    assert worst_ms(bounds(way)["meter1.out"]) == pytest.approx(3 * 10 + 1518 * 8e-3, abs=0.2)


GOVERNED = """\
name: governed
segments: {near: {subnet: 10.1.0.0/24}}
nodes:
  sensors:
    segment: near
    software:
      fast: {udp: {to: sink, port: 9001, push: {size: 958 B, rate: 10 /s}}}
      slow: {udp: {to: sink, port: 9002, push: {size: 958 B, rate: 10 /s}}}
  router: {segment: near, forward: true, software: {gateway: {gateway: {
    link: way, cooperate: COOPERATE, flows: {
    first: {service: high-real-time, group: a, minimum: 100 kbit/s},
    second: {service: best-effort, group: a, minimum: 100 kbit/s OVERLAY}}}}}}
  sink: {software: {fast: {udp: {listen: 9001}}, slow: {udp: {listen: 9002}}}}
links:
  way: {between: [router, sink], forward: {rate: 1 Mbit/s, queue: {htb: {
    first: {port: 9001, rate: 400 kbit/s},
    second: {port: 9002, rate: 400 kbit/s, ceil: 400 kbit/s, limit: 20},
    rest: {rate: 200 kbit/s}}}}, reverse: {rate: 1 Mbit/s}}
run: {hold: 10 s}
"""
FRAME_MS = 1518 * 8e-3  # transmission time of a frame of another class at 1 Mbit/s


def governed(cooperate: bool, overlay: str = "") -> dict[str, FlowBound]:
    text = GOVERNED.replace("COOPERATE", str(cooperate).lower()).replace(" OVERLAY", overlay)
    plan = make_plan(parse("governed.yaml", text.encode()))
    return {one.flow.name: one for one in bounds_of(plan).flows}


def test_a_class_whose_share_a_gateway_may_take_has_no_more_than_its_minimum() -> None:
    for cooperate, least_mbit in ((False, 0.4), (True, 0.1)):
        found = governed(cooperate)
        assert worst_ms(found["sensors.fast"]) == pytest.approx(8 / 0.4 + FRAME_MS, abs=0.2)
        assert worst_ms(found["sensors.slow"]) == pytest.approx(8 / least_mbit + FRAME_MS, abs=0.2)


def test_a_class_that_a_gateway_forwards_itself_has_no_bound() -> None:
    found = governed(True, ", overlay: {flows: [{port: 9002, deadline: 1 s}]}")
    assert "a program of its node forwards the class itself" in found["sensors.slow"].bound.why
    assert worst_ms(found["sensors.fast"]) == pytest.approx(8 / 0.4 + FRAME_MS, abs=0.2)


def test_answers_come_back_behind_one_another() -> None:
    request = "request: {size: 958 B, reply: 458 B, rate: 10 /s, rate_of: client}"
    found = bounds("rate: 100 Mbit/s, delay: 10 ms", request)
    assert worst_ms(found["meter2.out"]) == pytest.approx(20 + 4 * 0.08 + 3 * 0.04, abs=0.02)


def test_senders_that_share_a_schedule_count_once() -> None:
    together = PUSH.replace(", rate_of: client", "")
    assert worst_ms(bounds(FIFO, together)["meter1.out"]) == pytest.approx(10 + 2 * 8)


def test_what_end_nodes_take_comes_before_the_first_link() -> None:
    text = FILE.replace("dscp: EF, ", "").replace("OTHER", PACED).replace("SENDS", PUSH).replace("WAY", FIFO)
    plan = make_plan(parse("bounds.yaml", text.encode()))
    found = {one.flow.name: one for one in bounds_of(plan, node_ns=1_000_000).flows}
    # ms: the bursts grow by 2 ms of each flow's rate; in kbit, sent at 1 Mbit/s
    grown = 2e-3 * (3 * 30 * 8 + 100 / 958 * 1000)
    assert worst_ms(found["meter1.out"]) == pytest.approx(2 + 10 + 4 * 8 + grown)


def test_no_bound_says_why() -> None:
    assert "it has no rate" in bounds("delay: 10 ms")["meter1.out"].bound.why
    assert worst_ms(bounds("delay: 10 ms", machine_bps=10**9)["meter1.out"]) == pytest.approx(10.032)
    assert "unstable" in bounds("rate: 500 kbit/s")["meter1.out"].bound.why
    assert "random" in bounds(FIFO, PUSH.replace("rate:", "arrivals: poisson, rate:"))["meter1.out"].bound.why
    assert "duplicates" in bounds(FIFO + ", duplicate: 1 %")["meter1.out"].bound.why


def test_the_command_prints_them(tmp_path: Path) -> None:
    file = tmp_path / "bounds.yaml"
    file.write_text(FILE.replace("OTHER", PACED).replace("SENDS", PUSH).replace("WAY", PRIO))
    said = CliRunner().invoke(vnet, ["plan", str(file), "--bounds"])
    assert said.exit_code == 0, said.output
    assert (
        "meter.out" in said.output
        and "not certain" in said.output
        and "end nodes take no time" in said.output
    )
    document = json.loads(CliRunner().invoke(vnet, ["plan", str(file), "--bounds", "--json"]).stdout)
    (first, *_) = [one for one in document["bounds"] if one["flow"] == "meter1.out"]
    assert first["worst_ns"] > 46_000_000 and first["certain"] is False
    nodes = CliRunner().invoke(vnet, ["plan", str(file), "--bounds", "--node-time", "50 us"])
    assert "end nodes take at most 50 us" in nodes.output
    wrong = CliRunner().invoke(vnet, ["plan", str(file), "--bounds", "--machine-rate", "fast"])
    assert wrong.exit_code == 2 and "--machine-rate" in wrong.output


@pytest.mark.parametrize("rate", ["1 Mbit/s", "500 kbit/s"])
def test_a_deadline_below_the_paths_delay_is_never_met(tmp_path: Path, rate: str) -> None:
    file = tmp_path / "bounds.yaml"
    text = FILE.replace("dscp: EF, ", "").replace("OTHER", PACED)
    text = text.replace("SENDS", PUSH.replace("40 ms", "9 ms")).replace("WAY", f"rate: {rate}, delay: 10 ms")
    file.write_text(text)
    said = CliRunner().invoke(vnet, ["plan", str(file), "--bounds"], env={"COLUMNS": "200"}).output
    assert "9 ms, never met" in said
    assert ("link way, near -> far: its rate is used by" in said) == (rate == "500 kbit/s")
    noted = CliRunner().invoke(vnet, ["plan", str(file)], env={"COLUMNS": "200"}).output
    assert "deadline of 9 ms, and the way from meter1 to sink-in takes 10 ms: they come too late" in noted
