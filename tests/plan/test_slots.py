"""Compares the computed wait of a single frame for a slot with a simulation of netem's own steps."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.plan import Impairment, Slot
from orchestrator import queueing
from orchestrator.lab.drivers.fake_tools import netem_options
from orchestrator.plan.build import make_plan
from orchestrator.plan.slots import lone_ns, slotted_ns
from orchestrator.plan.summary import impairment_words
from orchestrator.queueing.netem import QUEUE, from_options
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

MS = 10**6
LINK = """\
name: small
segments: {{left: {{subnet: 10.1.0.0/24}}, right: {{subnet: 10.1.0.0/24}}}}
nodes: {{a: {{segment: left}}, b: {{segment: right}}}}
links: {{wan: {{between: [left, right], forward: {{delay: 5 ms, slot: {slot}}}}}}}
"""


def left_at(due_ns: int, slot: Slot, draw: random.Random) -> float:
    """Returns the time at which netem_dequeue releases the frame, if it is called at arrival and when the
    frame is due: a slot after the due time stays.
    """
    at = draw.uniform(slot.min_ns, slot.max_ns)
    return at if at >= due_ns else due_ns + draw.uniform(slot.min_ns, slot.max_ns)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 30), st.integers(0, 10), st.integers(0, 20), st.integers(0, 2**32))
def test_the_expectation_is_that_of_netems_steps(due_ms: int, least: int, more: int, seed: int) -> None:
    slot, draw = Slot(least * 10**6, (least + more) * 10**6), random.Random(seed)
    drawn = fmean(left_at(due_ms * 10**6, slot, draw) for _ in range(2000))
    spread = (due_ms + least + more) * 10**6
    assert slotted_ns(due_ms * 10**6, slot) == pytest.approx(drawn, abs=0.12 * spread + 1)


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=9), st.integers(0, 30), st.integers(0, 2**32)
)  # fmt: skip
def test_of_times_of_ones_own_too(drawn_ms: list[int], due_ms: int, seed: int) -> None:
    times, draw = sorted(ms * 10.0**6 for ms in drawn_ms), random.Random(seed)
    due = due_ms * 1e6
    waits = [at if (at := draw.choice(times)) >= due else due + draw.choice(times) for _ in range(4000)]
    expected = slotted_ns(due, Slot(round(times[0]), round(times[-1]), table="own"), times)
    assert expected == pytest.approx(fmean(waits), abs=0.1 * (times[-1] + due) + 1)


@pytest.mark.parametrize("shape", ["uniform", "normal", "own"])
def test_and_of_a_jitter_before_them(shape: str) -> None:
    slot, draw, tables = Slot(2 * MS, 10 * MS), random.Random(7), {"own": [-8192] * 64 + [8192] * 64}
    wanted = Impairment(delay_ns=6 * MS, jitter_ns=MS, distribution=shape, slot=slot)
    jitter = {
        "uniform": lambda: draw.uniform(-1, 1),
        "normal": lambda: draw.gauss(0, 1),
        "own": lambda: draw.choice([-1, 1]),
    }[shape]
    drawn = fmean(left_at(round(7 * MS + jitter() * MS), slot, draw) for _ in range(100_000))
    assert lone_ns(wanted, MS, tables) == pytest.approx(drawn, rel=0.01), "a millisecond to be sent"
    assert lone_ns(dataclasses.replace(wanted, distribution="pareto"), MS, tables) is None


def test_times_of_a_file_are_planned_set_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "beats.csv").write_text("delay_ms\n4\n4\n8\n16\n")
    file = tmp_path / "x.yaml"
    plan = make_plan(parse(str(file), LINK.format(slot="{delays: beats.csv, packets: 7}").encode()))
    wanted = plan.links[0].forward.impairment
    assert (
        (slot := wanted.slot) is not None and slot.table is not None and wanted.tables >= plan.tables.keys()
    )
    assert slot.mean_ns == pytest.approx(22 / 3 * MS, rel=0.01) and (slot.packets, slot.bytes) == (7, 0)
    assert (slot.min_ns, slot.max_ns) == (pytest.approx(4 * MS, rel=0.01), pytest.approx(16 * MS, rel=0.01))
    assert any("in the mean, by a file) apart" in words for words in impairment_words(wanted))
    line = queueing.set_text("eth0", wanted).strip()
    assert f" slot distribution {slot.table} 7333us " in line and line.endswith("us packets 7"), line
    read = from_options(netem_options(line.split()[line.split().index("netem") + 1 :]), wanted)
    assert read.slot == slot
    other = dataclasses.replace(wanted, slot=Slot(4 * MS, 16 * MS))
    assert not QUEUE.takes(wanted, other), "the kernel would go on drawing from the table"


def test_slots_are_planned_and_said() -> None:
    (link,) = make_plan(
        parse("x.yaml", LINK.format(slot="{min: 2 ms, max: 10 ms, packets: 7}").encode())
    ).links
    assert link.forward.impairment.slot == Slot(2 * 10**6, 10 * 10**6, 7, 0)
    assert "slots 2 ms to 10 ms apart of at most 7 packets" in impairment_words(link.forward.impairment)
    (link,) = make_plan(parse("x.yaml", LINK.format(slot="{min: 4 ms}").encode())).links
    assert link.forward.impairment.slot == Slot(4 * 10**6, 4 * 10**6)


@pytest.mark.parametrize(("slot", "said"), [
    ("{min: 10 ms, max: 2 ms}", 'slot.max: "2 ms": is less than min, 10 ms'),
    ("{min: 0 s}", 'slot.min: "0 s": makes no slots'),
    ("{min: 1500 ns}", 'slot.min: "1.5 us": is finer than 1 us'),
    ("{min: 300 s}", 'slot.min: "300 s": is more than 274 s'),
    ("{max: 3 ms}", "slot.min: is missing; write `min:`, or `delays: FILE`"),
    ("{min: 3 ms, delays: here.csv}", "slot.min: conflicts with `delays`"),
    ("{delays: nowhere.csv}", "nowhere.csv: cannot be read"),
    ("{delays: back.csv}", "back.csv:2: delays: -1 ms: is negative"),
    ("{delays: wide.csv}", "more than 8.5 s from their mean"),
    ("{delays: 3}", "slot.delays: 3: is no file of delays"),
    ("{min: 3 ms, packets: 0}", "slot.packets: "),
])  # fmt: skip
def test_slots_that_cannot_be(slot: str, said: str, tmp_path: Path) -> None:
    for name, delays in (("here", "1\n2"), ("back", "-1\n2"), ("wide", "1\n40000")):
        (tmp_path / f"{name}.csv").write_text(f"delay_ms\n{delays}\n")
    with pytest.raises(TopologyError) as caught:
        parse(str(tmp_path / "x.yaml"), LINK.format(slot=slot).encode())
    assert said in "\n".join(map(str, caught.value.problems)), caught.value.problems
