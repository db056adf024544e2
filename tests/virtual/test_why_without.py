"""Tests the plan that `vnet why --without` makes: one cause is removed, and everything else is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_why_causes import CLEAN, LAB

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import load
from orchestrator.verify.without import WithoutError, without


def plan_of(tmp_path: Path, **changes: str) -> Plan:
    text = LAB
    for word, value in {**CLEAN, **changes}.items():
        text = text.replace(word, value)
    (tmp_path / "lab.yaml").write_text(text)
    return make_plan(load(tmp_path / "lab.yaml", {}))


def test_a_flow_is_gone_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    changed = without(plan, "flow:s.send")
    assert [one.name for one in changed.flows] == [one.name for one in plan.flows]
    (gone,) = (one for one in changed.flows if one.name == "s.send")
    assert gone.start_ns == gone.stop_ns
    assert {n.name for n in changed.nodes if not n.software} == {"s"}
    assert (changed.links, changed.steps, changed.seed) == (plan.links, plan.steps, plan.seed)


def test_loss_is_gone_from_link_and_command(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, EXTRA=", loss: 10 %")
    changed = without(plan, "loss:wan")
    assert "loss" in str(plan.steps) and "loss" not in str(changed.steps)
    assert changed.links == plan_of(tmp_path).links


def test_queue_rate_and_limit(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, LIMIT="cpu_limit: 0.1 cores, ")
    before = plan.links[0].forward.impairment
    assert without(plan, "queue:wan").links[0].forward.impairment.limit_packets == 20 * before.limit_packets
    assert without(plan, "rate:wan").links[0].forward.impairment.rate_bps == 10 * before.rate_bps
    assert {node.cpu_limit_cores for node in without(plan, "cpu:a").nodes} == {None}


def test_cuts_are_gone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, EVENTS="timeline:\n  - {at: hold + 1 s, link-down: wan, for: 200 ms}")
    assert len(plan.events) == 2 and without(plan, "cut:wan").events == ()


def test_neighbours_are_known(tmp_path: Path) -> None:
    changed = without(plan_of(tmp_path), "lookup:a")
    entries = {node.name: len(node.neighbours) for node in changed.nodes}
    assert entries == {"a": 3, "b": 1, "s": 1, "d": 1}


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("wan", "is not KIND:NAME"),
        ("loss:lan", "the run has no such loss; it has wan"),
        ("flow:x", "it has a.ask, s.send"),
        ("loss:wan", "nothing would change"),
        ("cpu:a", "nothing would change"),
    ],
)
def test_what_cannot_be_taken_out_is_refused(tmp_path: Path, cause: str, text: str) -> None:
    with pytest.raises(WithoutError, match=text):
        without(plan_of(tmp_path), cause)
