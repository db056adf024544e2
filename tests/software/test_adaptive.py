"""Tests adaptive messages: the plan, the choice of a way to send from the results of probes, and mistakes in
files.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.adaptive import planning
from orchestrator.software.adaptive.file import LOST_AFTER_NS
from orchestrator.topology.loading import parse

SENDER = "adaptive: {to: sink, push: {size: 200 B, rate: 50 /s}}"
FILE = f"""\
name: adapting
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  sink:
    segment: lan
    software:
      in: {{adaptive: {{listen: 7100}}}}
  source:
    segment: lan
    software:
      out:
        {SENDER}
groups: {{many: {{count: 2, segment: lan, software: {{in: {{adaptive: {{listen: 7100}}}}}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.source.software.out.adaptive"
MS = 1_000_000


def program(name: str) -> Any:
    """Returns a module of the programs that nodes run."""
    spec = importlib.util.spec_from_file_location(f"adaptive_{name}", planning.PROGRAMS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


policy, wire = program("policy"), program("wire")
LIMITS = policy.Policy(probe_every_ns=50 * MS, window_ns=2000 * MS, loss=0.05, queue_ns=100 * MS, stay_ns=0)


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("adapting.yaml", text.encode()))


def test_a_sender_pushes_to_one_receiver_and_has_the_policy() -> None:
    plan = planned(FILE.replace("rate: 50 /s}", "rate: 50 /s}, policy: {loss: 2 %, window: 4 s}"))
    (flow,) = plan.flows
    assert (flow.pattern, flow.payload.bytes, flow.sender) == ("push", 200, "source")
    (software,) = next(node for node in plan.nodes if node.name == "source").software
    assert software.process is not None
    files = {Path(file.path).name: file.content for file in software.process.files}
    assert set(files) == {"settings.json", "account.py", "sender.py", "wire.py", "policy.py"}
    settings = json.loads(files["settings.json"])
    assert (settings["use"], settings["to"]) == ("adaptive", [["10.1.0.1", 7100]])
    assert (settings["policy"]["loss"], settings["policy"]["window_ns"]) == (0.02, 4 * 10**9)


@pytest.mark.parametrize(
    ("use", "frames"), [("once", 50), ("stream", 100), ("twice", 100), ("adaptive", 140)]
)
def test_frames_are_those_of_datagrams_or_segments_and_of_probes(use: str, frames: int) -> None:
    plan = planned(FILE.replace("to: sink,", f"to: sink, use: {use},"))
    found = {p.name: p.value for p in plan.predictions}
    assert found["offered frames"] == pytest.approx(frames)


def probes(took_ms: list[float | None], every_ms: int = 50) -> Any:
    """Returns probes with these round-trip times in ms (None: no answer); the first was sent at 0."""
    found = policy.Probes(2000 * MS)
    for seq, took in enumerate(took_ms):
        found.send(seq, seq * every_ms * MS)
        if took is not None:
            found.back(seq, int((seq * every_ms + took) * MS))
    return found


@pytest.mark.parametrize(
    ("took_ms", "how"),
    [
        ([20.0] * 30, "stream"),
        ([20.0] * 7, "twice"),  # too few probes to decide, so the present way stays
        ([20.0, None, 20.0, 20.0, 20.0] * 6, "twice"),
        ([20.0] * 10 + [20.0 + 30 * n for n in range(15)], "once"),
        ([20.0, None] * 10 + [200.0, 250.0, 300.0, 350.0] * 2, "once"),  # a queue builds up and drops
        ([20.0] * 29 + [None], "stream"),  # the answer to the last probe may still arrive
        ([None] * 20, "twice"),
    ],
)
def test_the_choice(took_ms: list[float | None], how: str) -> None:
    found = probes(took_ms).measured(len(took_ms) * 50 * MS)
    assert policy.choice(found, LIMITS, "twice" if len(took_ms) < 8 or None in took_ms else "stream") == how


def test_a_probe_counts_as_lost_after_half_a_second_and_not_beyond_the_window() -> None:
    found = probes([None] * 8 + [20.0] * 12)
    assert found.measured(20 * 50 * MS).loss == pytest.approx(8 / 20)
    assert found.measured(8 * 50 * MS) is None or found.measured(8 * 50 * MS).loss < 8 / 20
    for seq in range(20, 60):
        found.send(seq, seq * 50 * MS)
        found.back(seq, (seq * 50 + 20) * MS)
    assert found.measured(60 * 50 * MS).loss == 0


def test_both_sides_have_one_time_after_which_a_probe_is_lost() -> None:
    assert policy.LOST_AFTER_NS == LOST_AFTER_NS


def test_a_header_is_read_as_it_was_written() -> None:
    data = wire.message(3, 70_000, 200)
    assert len(data) == 200 and tuple(wire.head(data)) == (wire.MESSAGE, 3, 70_000, 200)
    assert wire.head(data[:15]) is None and wire.head(wire.probe(9)).seq == 9


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        (SENDER, "adaptive: {to: sink}", PLACE, "says to whom, but not what it sends"),
        ("size: 200 B", "size: 1500 B", f"{PLACE}.push.size", "from 16 to 1400 bytes"),
        ("size: 200 B", "size: 15 B", f"{PLACE}.push.size", "from 16 to 1400 bytes"),
        ("to: sink", "to: many", f"{PLACE}.to", "a sender has one receiver"),
        ("to: sink", "to: source", f"{PLACE}.to", "a flow to itself"),
        ("to: sink", "to: sink, use: once, policy: {loss: 1 %}", f"{PLACE}.policy", "chooses nothing"),
        ("to: sink", "to: sink, policy: {window: 100 ms}", f"{PLACE}.policy.window", "fewer than ten probes"),
        ("to: sink", "to: sink, policy: {window: 900 ms}", f"{PLACE}.policy.window", "decided after 500 ms"),
        ("to: sink", "to: sink, policy: {probe_every: 0 s}", f"{PLACE}.policy.probe_every", "not above zero"),
        (
            "{listen: 7100}",
            "{listen: 7100, use: once}",
            "nodes.sink.software.in.adaptive.use",
            "does not belong to the side that listens",
        ),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)


def test_more_messages_than_a_program_can_be_told_are_refused() -> None:
    from orchestrator.topology import TopologyError

    with pytest.raises(TopologyError, match=r"sends about .* messages, and 10000 are the most; shorten"):
        planned(FILE.replace("rate: 50 /s", "rate: 5000 /s"))
