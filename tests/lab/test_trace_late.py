"""Tests that the topology file determines how late a link's change from a trace may be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from orchestrator.lab.events import Events
from orchestrator.lab.replay import Replay
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

FILE = """\
name: late
segments: {lan: {subnet: 10.9.0.0/24}}
nodes: {a: {segment: lan}, b: {segment: lan}}
run: {hold: 1 s%s}
"""


def test_the_limit_is_the_files_else_10_ms(tmp_path: Path) -> None:
    file = tmp_path / "late.yaml"
    for more, ns in (("", 10_000_000), (", trace_late: 50 ms", 50_000_000)):
        file.write_text(FILE % more)
        assert make_plan(load(file)).trace_late_ns == ns


def test_the_warning_names_the_limit_and_the_key() -> None:
    replay, events = object.__new__(Replay), Events()
    plan = SimpleNamespace(trace_late_ns=50_000_000)
    replay._lab = SimpleNamespace(plan=plan, events=events)  # type: ignore[assignment]
    replay._late, replay._changes, replay._skipped = 2, 9, 1
    replay.end()
    (warning,) = events.warnings
    assert "2 of 9 changes came more than 50 ms late, 1 were left out" in warning.text
    assert "run: {trace_late: 50 ms}" in warning.remedy
