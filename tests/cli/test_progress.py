"""Tests progress: the state that is computed from events, and the plain lines for a pipe."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.cli.progress import (
    AFTER,
    ORDER,
    Progress,
    duration,
    fold,
    left_s,
    left_words,
    planned,
    share,
)
from orchestrator.cli.views import PlainView

PLAN = SimpleNamespace(
    ramp_ns=70_000_000_000, hold_ns=60_000_000_000, nodes=(), links=(), proof=SimpleNamespace(at_most_ns=None)
)


class Clock:
    """A clock that advances only when a test adds seconds."""

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
        "     0.0 s  create  about 2 min 21 s left",
        "     0.4 s  network  about 2 min 21 s left",
        "     0.5 s  warning: steal time 12 %; use a quieter machine",
        "     1.0 s  ramp  about 2 min 17 s left",
        "     8.0 s  ramp  sessions 35/350  about 2 min 10 s left",
        "    71.0 s  hold  sessions 35/350  about 67 s left",
        "    81.0 s  event: link-down a, b, c and 1 more",
        "   130.0 s  hold  sessions 35/350, 11 999 sent, 11 990 arrivals  about 8 s left",
        "   131.0 s  drain  waiting for 10 messages  sessions 35/350, 11 999 sent, 11 990 arrivals  "
        "about 7 s left",
        "   131.5 s  error: line one\n            line two",
    ]


def test_a_warning_that_doubts_no_figure_is_a_note() -> None:
    """Shows that a warning is a note if it doubts no figure, such as paths of the machine that the file
    names.
    """
    lines: list[str] = []
    view = PlainView(planned(PLAN), lines.append, Clock())
    for suspect in (True, False):
        view({"event": "warning", "text": "reads /srv", "remedy": "look", "suspect": suspect})
    assert [text.split(" s  ")[1] for text in lines] == [
        "warning: reads /srv; look",
        "note: reads /srv; look",
    ]


def test_the_rest_falls_in_every_phase_from_set_up_to_report() -> None:
    progress, now, seen = planned(PLAN), 0.0, list[float]()
    lasts = {**dict.fromkeys(ORDER, 9.0), "ramp": 70.0, "hold": 60.0}  # all slower than expected
    for name, length in lasts.items():
        progress = fold(progress, {"event": "phase", "phase": name}, now)
        for _ in range(9):
            seen.append(left_s(progress, now) or 0.0)
            now += length / 9
    assert all(later < before for before, later in pairwise(seen))
    assert seen[0] > 70 + 60 and seen[-1] < 4


def test_the_rest_in_the_hold_is_the_hold_and_what_follows_it() -> None:
    progress = fold(planned(PLAN), {"event": "phase", "phase": "hold"}, 70.0)
    after = sum(progress.expected_s[name] for name in AFTER)
    assert left_s(progress, 80.0) == pytest.approx(50.0 + after)
    measured_only = fold(planned(PLAN, last="teardown"), {"event": "phase", "phase": "hold"}, 70.0)
    assert left_s(measured_only, 80.0) == pytest.approx(50.0 + after - 5.5)


def test_the_rest_of_a_phase_that_counts_follows_its_count() -> None:
    progress = planned(PLAN)
    for now, done in ((0.0, 0), (10.0, 100)):
        event = {"event": "phase", "phase": "create", "done": done, "total": 400}
        progress = fold(progress, event, now)
    rest = left_s(progress, 10.0)
    later = {**progress.expected_s, **progress.length_s, "create": 0.0}
    assert rest == pytest.approx(30.0 + sum(later.values()))


def test_the_first_of_many_does_not_make_the_rest_jump() -> None:
    progress = fold(planned(PLAN), {"event": "phase", "phase": "report"}, 0.0)
    before = left_s(progress, 2.0)
    progress = fold(progress, {"event": "phase", "phase": "report", "done": 1, "total": 25}, 2.0)
    assert left_s(progress, 2.0) == before


def test_in_virtual_time_the_rest_is_known_once_the_labs_clock_runs() -> None:
    progress = fold(planned(PLAN, "virtual"), {"event": "phase", "phase": "prove"}, 0.0)
    assert left_s(progress, 1.0) is None
    for now, done in ((2.0, 0), (4.0, 35)):
        event = {"event": "phase", "phase": "ramp", "done": done, "total": 70}
        progress = fold(progress, event, now)
    after = sum(progress.expected_s[name] for name in AFTER)
    assert left_s(progress, 4.0) == pytest.approx(2.0 + 60 / 17.5 + after)


def test_an_estimate_has_no_tenths() -> None:
    progress = fold(planned(PLAN), {"event": "phase", "phase": "report"}, 0.0)
    assert left_words(progress, 0.0) == "about 4 s left"
    assert left_words(progress, 60.0) == "about 1 s left"
    assert left_words(Progress(), 0.0) == ""


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


def test_an_error_that_the_display_printed_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    from orchestrator.cli.campaign import CellView, doubts
    from orchestrator.cli.run import ending
    from orchestrator.run.run import Outcome

    failed = Outcome(Path("r"), "failed", False, "link wan: no netem", (), None)
    assert ending(failed, ("link wan: no netem",)) == "failed"
    assert ending(failed, ()) == "failed: link wan: no netem"
    seen = CellView()
    seen({"event": "cell", "cell": "a.r1", "number": 1, "total": 1})
    seen({"event": "plan", "plan": PLAN, "why": "fake: asked for", "run_dir": "r"})
    seen({"event": "error", "text": "link wan: no netem"})
    seen({"event": "cell-end", "cell": "a.r1", "state": "failed", "error": "link wan: no netem"})
    summary = SimpleNamespace(errors={"a.r1": "link wan: no netem", "b.r1": "earlier"}, suspect={})
    assert doubts(summary, seen.printed) == ["  failed: a.r1", "  failed: b.r1: earlier"]  # type: ignore[arg-type]
    assert capsys.readouterr().err.count("no netem") == 1
