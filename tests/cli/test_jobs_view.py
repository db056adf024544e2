"""Tests the lines that show parallel runs of a campaign: before, in and after a phase."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.jobs import EVERY_S, JobsView

BEGUN = [{"event": "cell", "number": 3, "total": 4, "cell": "a.r3", "left": 2}]
IN_HOLD = [*BEGUN, {"event": "phase", "number": 3, "phase": "hold", "done": 0, "total": 10, "text": ""}]
AFTER = [*IN_HOLD, {"event": "end", "number": 3}]  # the lab ends; its reduction has not begun


@pytest.mark.parametrize(
    ("events", "shown"), [(BEGUN, "[3] begins"), (IN_HOLD, "[3] hold"), (AFTER, "[3] hold done")]
)
def test_a_run_between_two_phases_is_not_at_its_beginning(events: list[dict[str, Any]], shown: str) -> None:
    now, lines = [0.0], list[str]()
    view = JobsView(lines.append, lambda: now[0])
    for event in events[:-1]:
        view(event)
    now[0] = EVERY_S
    view(events[-1])
    assert lines[-1].split("  ")[-1] == shown
