"""Tests how the lab handles programs that end by themselves, as the launcher reports it, in each phase of a
run.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Literal

import pytest

from contract.plan import Process, Software
from orchestrator.lab.events import Events
from orchestrator.lab.launcher_events import LauncherEvents


@pytest.mark.parametrize(
    ("phase", "role", "status", "warned"),
    [
        ("hold", "utility", 0, True),
        ("drain", "utility", 0, False),
        ("collect", "client", 0, False),
        ("drain", "utility", 1, True),
        ("drain", "server", 0, True),  # a server must answer until the end
    ],
)
def test_a_sender_may_end_well_after_the_hold(
    phase: str, role: Literal["utility", "client", "server"], status: int, warned: bool
) -> None:
    launcher_events, events = LauncherEvents(), Events()
    events.phase_name = phase
    software = Software("ask", role, "command", Process(("x",)))
    launcher_events.lab = SimpleNamespace(  # type: ignore[assignment]
        events=events, driver=None, nodes={}, meant=set(), started={("a", "ask"): software},
        plan=SimpleNamespace(on_node_failure="go on"), in_scenario=True,
    )  # fmt: skip
    launcher_events.take({"event": "exited", "node": "a", "software": "ask", "status": status, "log": []})
    assert [w.code for w in events.warnings] == ["exited"] * warned
