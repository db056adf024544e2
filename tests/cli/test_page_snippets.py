"""Tests that a snippet offered by the page makes the same impairment again, or states what it omits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.page.snippets import left_out, snippet
from orchestrator.plan.build import make_plan
from orchestrator.queueing import QUEUE_KINDS, written
from orchestrator.topology import load

FILE = """name: trial
segments: {{a: {{subnet: 10.1.0.0/24}}, b: {{subnet: 10.1.0.0/24}}}}
nodes: {{one: {{segment: a}}, two: {{segment: b}}}}
links:
  wan: {{between: [a, b], both: {{{wan}}}}}
run: {{hold: 10 s}}
timeline:
{events}
"""
WANS = {
    "delay": "delay: 1.234 ms, jitter: 200 us, distribution: normal, delay_correlation: 25 %",
    "losses": "loss: 0.5 %, loss_correlation: 10 %, duplicate: 1 %, corrupt: 0.01 %",
    "reorder": "delay: 2 s, reorder: 3 %, reorder_correlation: 50 %, rate: 2.5 Mbit/s",
    "bursts": "gilbert_elliott: {good_to_bad: 1 %, bad_to_good: 20 %, loss_in_bad: 70 %}",
    "limit": "rate: 10 Mbit/s, limit: 17",
    "card": "rate: 10 Mbit/s, backpressure: true",
} | {
    f"queue {kind} {number}": f"delay: 5 ms, rate: 10 Mbit/s, queue: {written(queue)}"
    for kind, queue_kind in QUEUE_KINDS.items() for number, queue in enumerate(queue_kind.examples, 1)
}  # fmt: skip


def asked(tmp_path: Path, wan: str, events: str = "  - {at: hold + 1 s, link-down: wan}") -> Any:
    """Returns the impairment of the planned link, and the first event of the timeline."""
    file = tmp_path / "trial.yaml"
    file.write_text(FILE.format(wan=wan, events=events))
    plan = make_plan(load(file, {}))
    return dataclasses.asdict(plan.links[0].forward.impairment), plan.events[0]


@pytest.mark.parametrize("name", WANS)
def test_what_is_pasted_makes_the_link_again(tmp_path: Path, name: str) -> None:
    wanted, _ = asked(tmp_path, WANS[name])
    answer = {"forward": wanted, "reverse": wanted}
    text = snippet("wan", answer, {"changes": {"limit": "17"}} if name == "limit" else {})
    _, event = asked(tmp_path, "delay: 1 ms", f"  - {{at: hold + 1.5 s, {text}}}")
    assert event.action == "impair"
    for side in ("forward", "reverse"):
        assert _plain(event.args[side]) == _plain(wanted)
    assert left_out(answer) == ""


def _plain(value: Any) -> Any:
    """Returns the value with tuples turned into lists."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def test_what_it_cannot_write_is_said(tmp_path: Path) -> None:
    wanted, _ = asked(tmp_path, "rate: 1 Mbit/s, slot: {min: 1 ms, max: 2 ms}")
    assert left_out({"forward": wanted}) == "slot"
    assert snippet("wan", {"forward": wanted}, {}) == "impair: wan, forward: {rate: 1 Mbit/s}"
    assert snippet("wan", {}, {"down": True}) == "link-down: wan"
