"""Progress: what is folded from events, and the plain lines that a pipe gets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.cli.plain import PlainView
from orchestrator.cli.progress import Progress, duration, fold, left_s, planned, share

PLAN = SimpleNamespace(ramp_ns=70_000_000_000, hold_ns=60_000_000_000)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_of_a_run() -> None:
    clock, lines = Clock(), []
    view = PlainView(planned(PLAN), lines.append, clock)
    for wait_s, event in [
        (0.0, {"event": "phase", "phase": "create", "done": 0, "total": 350}),
        (0.3, {"event": "phase", "phase": "create", "done": 350, "total": 350}),
        (0.1, {"event": "phase", "phase": "network"}),
        (
            0.1,
            {
                "event": "warning",
                "code": "steal",
                "text": "steal time 12 %",
                "remedy": "use a quieter machine",
            },
        ),
        (0.5, {"event": "phase", "phase": "ramp"}),
        (1.0, {"event": "sessions", "connected": 5, "total": 350}),
        (1.0, {"event": "sessions", "connected": 10, "total": 350}),
        (5.0, {"event": "sessions", "connected": 35, "total": 350}),
        (63.0, {"event": "phase", "phase": "hold"}),
        (10.0, {"event": "event", "action": "link-down", "targets": ["a", "b", "c", "d"], "ok": True}),
        (49.0, {"event": "pending", "scheduled": 12000, "sent": 11999, "received": 11990}),
        (1.0, {"event": "phase", "phase": "drain", "text": "waiting for 10 messages"}),
        (0.5, {"event": "error", "text": "line one\nline two"}),
    ]:
        clock.now += wait_s
        view(event)
    assert lines == [
        "     0.0 s  create  about 2 min 10 s left",
        "     0.4 s  network  about 2 min 10 s left",
        "     0.5 s  warning: steal time 12 %; use a quieter machine",
        "     1.0 s  ramp  about 2 min 10 s left",
        "     8.0 s  ramp  sessions 35/350  about 2 min 03 s left",
        "    71.0 s  hold  sessions 35/350  about 60 s left",
        "    81.0 s  event: link-down a, b, c and 1 more",
        "   130.0 s  hold  sessions 35/350, 11 999 sent, 11 990 received  about 1.0 s left",
        "   131.0 s  drain  waiting for 10 messages  sessions 35/350, 11 999 sent, 11 990 received",
        "   131.5 s  error: line one\n            line two",
    ]


def test_estimate_counts_down_and_ends_with_the_hold() -> None:
    progress = fold(planned(PLAN), {"event": "phase", "phase": "ramp"}, 2.0)
    assert left_s(progress, 12.0) == 120.0
    progress = fold(progress, {"event": "phase", "phase": "hold"}, 72.0)
    assert left_s(progress, 82.0) == 50.0
    progress = fold(progress, {"event": "phase", "phase": "drain"}, 132.0)
    assert left_s(progress, 133.0) is None


def test_share_by_time_where_the_plan_fixes_it_else_by_count() -> None:
    progress = fold(planned(PLAN), {"event": "phase", "phase": "create", "done": 35, "total": 350}, 0.0)
    assert progress.current and share(progress.current, progress, 5.0) == pytest.approx(0.1)
    progress = fold(progress, {"event": "phase", "phase": "ramp"}, 10.0)
    assert progress.current and share(progress.current, progress, 45.0) == pytest.approx(0.5)


def test_unknown_events_change_nothing() -> None:
    before = planned(PLAN)
    assert fold(before, {"event": "something-new", "x": 1}, 1.0) is before


def test_the_end_closes_the_last_phase() -> None:
    progress = fold(Progress(), {"event": "phase", "phase": "teardown"}, 1.0)
    assert fold(progress, {"event": "end", "status": 0}, 3.0).current is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.44, "0.4 s"), (47.6, "48 s"), (725, "12 min 05 s"), (11220, "3 h 07 min")]
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_campaign_says_how_long_the_rest_takes(capsys: pytest.CaptureFixture[str]) -> None:
    from orchestrator.cli.campaign import CellView
    from orchestrator.plan.build import make_plan
    from orchestrator.topology import load

    plan = make_plan(load(Path(__file__).resolve().parents[2] / "topologies/pair.yaml", {"hold": "30 s"}))
    seen = CellView()
    for number in (1, 2):
        seen({"event": "cell", "cell": f"pair.r{number}", "number": number, "total": 4})
        seen({"event": "plan", "plan": plan, "why": "fake: asked for", "run_dir": "r"})
        seen({"event": "cell-end", "cell": f"pair.r{number}", "state": "complete", "error": None})
    said = capsys.readouterr().err.splitlines()
    least = 4 * (plan.ramp_ns + plan.hold_ns) / 1e9
    assert f"4 runs, at least {duration(least)} if all are like this one" in said
    assert said.count("kernel: fake: asked for") == 1
    assert [line.split("; ")[1][:7] for line in said if line.startswith("  complete in ")] == [
        "3 left,", "2 left,",
    ]  # fmt: skip
