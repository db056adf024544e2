"""Tests the campaign page's section on repetitions: the rule of `until`, the order, and runs set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from contract.cells import set_aside
from contract.codec import to_json
from contract.enough import Enough
from contract.plan import Expectation
from reports.cell import Cell
from reports.enough import known, summed_up
from reports.errors import RunDirectoryError
from reports.metrics.metric import Metric, Of
from reports.rundir import Run
from reports.sections.registry import SECTIONS
from reports.sections.repetitions import section
from reports.sections.section import Page
from reports.study import Study

RULE = Enough(Expectation("latency_p99", "metric", "latency_p99", unit="ms"), 0.05, 3, 6)
VALUES = {"delay 5 ms": (20.0, 20.1, 20.2), "delay 9 ms": (20.0, 40.0, 30.0, 25.0, 36.0, 22.0)}


@pytest.fixture(autouse=True)
def no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the messages of cells, because cells of these tests have metrics but no run."""
    monkeypatch.setattr("reports.expect.values.held_messages", lambda _: None)


def cell(series: str, repetition: int, value: float) -> Cell:
    metric = Metric("latency_p99", Of(traffic_class="up"), value, "ms", 99, None, None, "made")
    return Cell(cast(Run, None), [metric], "pair", {}, series, repetition, f"{series}.r{repetition}")


def line(name: str, run: str, state: str = "complete", suspect: str | None = None) -> dict[str, Any]:
    return {"cell": name, "run_dir": f"runs/{run}", "state": state, "suspect": suspect}


def page_of(tmp_path: Path, about: dict[str, Any], lines: list[dict[str, Any]]) -> Page:
    (tmp_path / "campaign.json").write_text(json.dumps(about))
    (tmp_path / "cells.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines) + '{"torn')
    cells = [cell(name, n, v) for name, several in VALUES.items() for n, v in enumerate(several, 1)]
    return Page(Study("made", tmp_path, tuple(cells), False), tmp_path)


def test_it_says_how_well_each_setting_is_known_and_which_correction_is_used(tmp_path: Path) -> None:
    found = section(page_of(tmp_path, {"until": json.loads(to_json(RULE))}, []))
    assert found is not None and section in SECTIONS
    body = str(found.body)
    assert "20.1<small>± " in body and "after 3 repetitions" in body and "after 6 repetitions" in body
    assert body.count(">holds<") == 1 and body.count(">cannot tell<") == 1
    assert "after 3, 4, 6 repetitions" in body and "(Bonferroni): each interval has 98.3 %" in body


def test_the_terminal_names_what_is_not_known(tmp_path: Path) -> None:
    first, second = summed_up(page_of(tmp_path, {"until": json.loads(to_json(RULE))}, []).study)
    assert first == "latency_p99 known within 5 % of its mean: 1 of 2 settings"
    assert second.startswith("  delay 9 ms, up: 28.8") and second.endswith("after 6 repetitions")
    assert summed_up(page_of(tmp_path, {}, []).study) == []


def test_a_setting_whose_runs_all_failed_is_counted(tmp_path: Path) -> None:
    about = {"until": json.loads(to_json(RULE)), "cells": [{"cell": f"pair.delay-20ms.r{n}"} for n in (1, 2)]}
    page = page_of(tmp_path, about, [])
    first, *others = summed_up(page.study)
    assert first.endswith("1 of 3 settings") and others[1:] == ["  pair.delay-20ms: no run measured it"]
    found = section(page)
    assert found is not None and str(found.body).count(">cannot tell<") == 2


def test_the_interval_has_the_confidence_of_a_look() -> None:
    (one,) = known([cell("a", n, v) for n, v in enumerate((9.0, 10.0, 11.0), 1)], RULE)
    assert one.mean == 10 and one.n == 3 and not one.enough
    assert one.half == pytest.approx(7.648760 / 3**0.5, rel=1e-4), "t(2) at 1 - 0.05 / 3 / 2"


def test_runs_set_aside_are_named_with_their_reason(tmp_path: Path) -> None:
    lines = [line("a.r1", "a", suspect="a stall of 90 ms"), line("b.r1", "b"), line("a.r1", "a-2")]
    about = {"order": {"kind": "random", "seed": 41}, "design": "full: every combination of a, b"}
    found = section(page_of(tmp_path, about, lines))
    assert found is not None
    body = str(found.body)
    assert "a stall of 90 ms" in body and "runs/a<" in body and "runs/a-2" not in body
    assert "drawn from seed 41" in body and "Design: full" in body and "Bonferroni" not in body


def test_interrupted_runs_are_not_set_aside() -> None:
    lines = [line("a", "a", "interrupted"), line("a", "a-2"), line("b", "b", "failed"), line("b", "b-2")]
    assert set_aside(lines) == {}
    again = [*lines, line("b", "b-3", "failed")]
    assert [one["run_dir"] for one in set_aside(again)["b"]] == ["runs/b-2"]


def test_a_plain_campaign_has_no_such_section_and_a_changed_rule_is_refused(tmp_path: Path) -> None:
    assert section(page_of(tmp_path, {}, [line("a", "a")])) is None
    with pytest.raises(RunDirectoryError, match=r"campaign\.json: until: was changed"):
        section(page_of(tmp_path, {"until": {"interval": "much"}}, []))
