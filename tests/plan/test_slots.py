"""Slots: what a frame that is alone waits for one, against netem's own steps drawn many times."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.model import Slot
from orchestrator.plan.build import make_plan
from orchestrator.plan.netem import slotted_ns
from orchestrator.plan.summary import impairment_words
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

LINK = """\
name: small
segments: {{left: {{subnet: 10.1.0.0/24}}, right: {{subnet: 10.1.0.0/24}}}}
nodes: {{a: {{segment: left}}, b: {{segment: right}}}}
links: {{wan: {{between: [left, right], forward: {{delay: 5 ms, slot: {slot}}}}}}}
"""


def left_at(due_ns: int, slot: Slot, draw: random.Random) -> float:
    """netem_dequeue, asked when the frame comes and when it is due: a slot behind the due time is kept."""
    at = draw.uniform(slot.min_ns, slot.max_ns)
    return at if at >= due_ns else due_ns + draw.uniform(slot.min_ns, slot.max_ns)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 30), st.integers(0, 10), st.integers(0, 20), st.integers(0, 2**32))
def test_the_expectation_is_that_of_netems_steps(due_ms: int, least: int, more: int, seed: int) -> None:
    slot, draw = Slot(least * 10**6, (least + more) * 10**6), random.Random(seed)
    drawn = fmean(left_at(due_ms * 10**6, slot, draw) for _ in range(2000))
    spread = (due_ms + least + more) * 10**6
    assert slotted_ns(due_ms * 10**6, slot) == pytest.approx(drawn, abs=0.12 * spread + 1)


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
    ("{max: 3 ms}", "slot.min: is missing"),
    ("{min: 3 ms, packets: 0}", "slot.packets: "),
])  # fmt: skip
def test_slots_that_cannot_be(slot: str, said: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse("x.yaml", LINK.format(slot=slot).encode())
    assert said in "\n".join(map(str, caught.value.problems)), caught.value.problems
