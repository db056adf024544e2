"""Tests trials in the topology file: every mistake is found with its rule, and a correct file
becomes a plan.
"""

from __future__ import annotations

import dataclasses

import pytest

from contract.codec import build
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.software.frames.trials import Frames
from orchestrator.topology.loading import parse

FILE = """\
name: trials
segments: {a: {subnet: 10.1.0.0/24}, b: {subnet: 10.1.0.0/24}, far: {subnet: 10.2.0.0/24}}
nodes:
  tester: {segment: a, software: {test: {frames: {to: sink}}}}
  sink: {segment: b}
  stranger: {segment: far}
links:
  way: {between: [a, b], forward: {rate: 10 Mbit/s}}
  last: {between: [sink, b], reverse: {rate: 5 Mbit/s}}
run: {hold: 1 s}
"""


def planned(options: str = "to: sink", file: str = FILE) -> Frames:
    plan = make_plan(parse("trials.yaml", file.replace("to: sink", options).encode()))
    (found,) = [s.spec for n in plan.nodes for s in n.software if s.kind == "frames"]
    return build(Frames, found)


def test_defaults_are_short_trials_of_all_sizes() -> None:
    frames = planned()
    assert frames.sizes == (64, 128, 256, 512, 1024, 1280, 1518)
    assert frames.tests == ("throughput", "latency", "frame-loss", "back-to-back")
    assert (frames.to, frames.interface, frames.to_interface, frames.bypass) == (
        "sink",
        "eth0",
        "eth0",
        False,
    )
    assert frames.latency_trial_ns == frames.trial_ns == 10**9


def test_the_rate_asked_is_the_lowest_on_the_way_and_in_its_direction() -> None:
    assert planned().path_rate_bps == 5_000_000
    assert planned(file=FILE.replace("reverse: {rate: 5", "forward: {rate: 5")).path_rate_bps == 10_000_000
    assert planned(file=FILE.replace("forward: {rate: 10", "reverse: {rate: 10")).path_rate_bps == 5_000_000


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [("all", None), ("64", (64,)), ('"1518"', (1518,)), ("[512, 64, 512]", (64, 512))],
)
def test_sizes_are_all_one_or_a_list(sizes: str, wanted: tuple[int, ...] | None) -> None:
    assert planned(f"to: sink, sizes: {sizes}").sizes == (wanted or planned().sizes)


@pytest.mark.parametrize(
    ("options", "path", "rule"),
    [
        ("to: nobody", "frames.to", "no node is called that"),
        ("to: tester", "frames.to", "does not send to itself"),
        ("to: stranger", "frames.to", "no segment or link joins the two nodes"),
        ("to: sink, sizes: 63", "frames.sizes", "from 64 to 9018 bytes"),
        ("to: sink, sizes: []", "frames.sizes", "at least 1 items"),
        ("to: sink, sizes: [64, many]", "frames.sizes", "from 64 to 9018 bytes"),
        ("to: sink, sizes: 1519", "frames.sizes", "do not fit the segments' MTU of 1500"),
        ("to: sink, tests: [latency]", "frames.tests", "latency is measured at the throughput"),
        ("to: sink, tests: [throughput, throughput]", "frames.tests", "names a test twice"),
        ("to: sink, tests: [jitter]", "frames.tests", "not one of the values"),
        ("to: sink, trial: 1 ms", "frames.trial", "must be from 10 ms to 1 h"),
        ("to: sink, resolution: 60 %", "frames.resolution", "must be from 0.1% to 50%"),
        ("to: sink, loss_step: 20 %", "frames.loss_step", "must be from 1.0% to 10%"),
        ("to: sink, line_rate: 0 bit/s", "frames.line_rate", "more than zero"),
        ("to: sink, latency_trials: 0", "frames.latency_trials", "at least 1"),
    ],
)
def test_mistakes_are_refused_by_their_rule(options: str, path: str, rule: str) -> None:
    with pytest.raises(TopologyError) as refused:
        planned(options)
    (problem,) = refused.value.problems
    assert problem.path.startswith(f"nodes.tester.software.test.{path}") and rule in str(problem)
    assert problem.line == 4


def test_a_group_has_no_trials() -> None:
    text = FILE.replace(
        "links:", "groups: {many: {count: 2, segment: a, software: {t: {frames: {to: sink}}}}}\nlinks:"
    )
    with pytest.raises(TopologyError, match="one after another, between two nodes"):
        parse("trials.yaml", text.encode())


def test_a_text_chooses_between_ports_and_a_plain_link() -> None:
    file = FILE.replace("  way:", "  port: {between: [tester, a], nics: NICS}\n  way:")
    plain = planned(file=file.replace("NICS", "none"))
    through = planned(file=file.replace("NICS", "eth8 eth9"))
    assert (plain.bypass, through.bypass) == (False, True)
    assert dataclasses.replace(through, bypass=False) == plain
    with pytest.raises(TopologyError, match="names two NICs, or none"):
        planned(file=file.replace("NICS", "eth8"))
