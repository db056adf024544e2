"""Tests that a failed cell is recorded and the campaign continues, and that the run of a killed cell is kept,
marked and repeated.
"""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract import manifest
from orchestrator.campaign import campaign, cells, journal
from orchestrator.campaign.campaign import run_campaign, status
from orchestrator.campaign.cells import recover
from orchestrator.campaign.settings import Settings
from orchestrator.cli.campaign import doubts, said, status_of
from orchestrator.kernel import ahead
from orchestrator.run.follow import follow
from orchestrator.run.run import Outcome
from orchestrator.topology import load_campaign

PAIR = Path(__file__).resolve().parents[2] / "topologies" / "pair.yaml"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = tmp_path / "c.yaml"
    block = f"topologies: [{PAIR}]\n  factors: {{hold: [1 s, 2 s, 3 s]}}\n  repetitions: 1\n"
    file.write_text(f"name: c\ncampaign:\n  {block}")
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("VNET_AGENT", "/bin/true")
    monkeypatch.setattr(campaign, "_report", lambda *_: None)
    return Settings(file, {}, "fake")


def ending(states: dict[str, str], ran: list[str]) -> Any:
    """Returns an `execute` that ends each hold's cell in the given state."""

    def execute(prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
        hold = prepared.plan.parameters["hold"]
        ran.append(hold)
        state = states.get(hold, "complete")
        if not manifest.read(run_dir):
            manifest.write(run_dir, {"state": state, "warnings": []})
        return Outcome(run_dir, state, False, "broker died" if state == "failed" else None, (), None)

    return execute


def test_a_failed_cell_does_not_stop_the_rest(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", ending({"2 s": "failed"}, ran))
    summary = run_campaign(settings, tmp_path / "out", lambda *_: None)
    assert ran == ["1 s", "2 s", "3 s"]
    assert (summary.complete, summary.failed, summary.left) == (2, 1, 0)
    failed = [line for line in journal.lines(tmp_path / "out") if line["state"] == "failed"]
    assert [line["error"] for line in failed] == ["broker died"]


def test_cells_that_failed_are_run_again_where_that_is_asked(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", ending({"2 s": "failed"}, ran))
    run_campaign(settings, tmp_path / "out", lambda *_: None)
    monkeypatch.setattr(cells, "execute", ending({}, ran))
    assert run_campaign(settings, tmp_path / "out", lambda *_: None).failed == 1
    assert run_campaign(settings, tmp_path / "out", lambda *_: None, retry_failed=True).complete == 3
    assert ran == ["1 s", "2 s", "3 s", "2 s"]


def test_an_interrupted_cell_ends_the_campaign_and_is_run_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", ending({"2 s": "interrupted"}, ran))
    assert run_campaign(settings, tmp_path / "out", lambda *_: None).interrupted
    monkeypatch.setattr(cells, "execute", ending({}, ran))
    assert run_campaign(settings, tmp_path / "out", lambda *_: None).left == 0
    assert ran == ["1 s", "2 s", "2 s", "3 s"]
    assert sorted(d.name for d in (tmp_path / "out" / "runs").iterdir()) == [
        "pair.hold-1s.r1", "pair.hold-2s.r1", "pair.hold-2s.r1-2", "pair.hold-3s.r1",
    ]  # fmt: skip


def test_killed_after_the_cells_line_nothing_is_run_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", ending({}, ran))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(journal, "forget", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        run_campaign(settings, tmp_path / "out", lambda *_: None)
    recover(tmp_path / "out")
    assert [line["state"] for line in journal.lines(tmp_path / "out")] == ["complete"]
    assert journal.in_flight(tmp_path / "out") == []


def test_a_killed_cells_run_is_kept_and_marked(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """An exception that stands for SIGKILL: no code of vNET handles it."""

    def killed(_prepared: Any, run_dir: Path, *_: Any, **__: Any) -> Outcome:
        (run_dir / "manifest.json").write_text(json.dumps({"state": "running", "seed": 1}))
        raise Killed

    monkeypatch.setattr(cells, "execute", killed)
    out = tmp_path / "out"
    with pytest.raises(Killed):
        run_campaign(settings, out, lambda *_: None)
    recover(out)
    (line,) = journal.lines(out)
    assert line["state"] == "interrupted"
    manifest = json.loads((out / line["run_dir"] / "manifest.json").read_text())
    assert (manifest["state"], manifest["suspect"], manifest["seed"]) == ("interrupted", True, 1)
    assert "run again" in manifest["error"]
    assert status(out).left == 3


def test_other_parameters_are_another_campaign(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "execute", ending({}, []))
    run_campaign(settings, tmp_path / "out", lambda *_: None)
    other = Settings(settings.file, {"delay": "5 ms"}, "fake")
    with pytest.raises(journal.CampaignError, match=r"parameters: was \{\}, is \{'delay': '5 ms'\}"):
        run_campaign(other, tmp_path / "out", lambda *_: None)


def test_what_could_not_be_loaded_beside_a_lab_is_told_and_not_what_it_breaks_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shows that the error names a library that could not be loaded beside a lab, and not the later errors of
    the same cause: polars stays half loaded.
    """

    def short(_: str) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory", "polars")

    monkeypatch.setattr(ahead.importlib, "import_module", short)
    event = {"event": "phase", "phase": "collect"}
    lab = SimpleNamespace(events=lambda: iter([event]))
    told: list[object] = []
    followed = follow(lambda: lab, told.append, beside=ahead.load_reports)  # type: ignore[arg-type]
    assert told == [event]
    assert str(followed.failure) == "[Errno 12] Cannot allocate memory: 'polars'"


def test_suspect_and_failed_cells_are_named_by_the_status(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = ending({"2 s": "failed"}, [])

    def with_doubt(prepared: Any, run_dir: Path, observe: Any, **more: Any) -> Outcome:
        if prepared.plan.parameters["hold"] == "3 s":
            warning = {"code": "exited", "text": "helper ended", "remedy": "", "suspect": True}
            manifest.write(run_dir, {"state": "complete", "warnings": [warning]})
        return cast(Outcome, execute(prepared, run_dir, observe, **more))

    monkeypatch.setattr(cells, "execute", with_doubt)
    told: list[Any] = []
    summary = run_campaign(settings, tmp_path / "out", told.append)
    assert summary.suspect == {"pair.hold-3s.r1": "helper ended"}
    assert summary.errors == {"pair.hold-2s.r1": "broker died"}
    why = [None, "the run's state is 'failed'", "helper ended"]
    assert [line["suspect"] for line in journal.lines(tmp_path / "out")] == why
    ends = [event for event in told if event["event"] == "cell-end"]
    assert [event["suspect"] for event in ends] == why
    assert said(summary) == "2 of 3 runs complete, 1 of them suspect, 1 failed"
    assert doubts(summary) == [
        "  failed: pair.hold-2s.r1: broker died", "  suspect: pair.hold-3s.r1: helper ended",
    ]  # fmt: skip
    assert [status_of(summary, strict, tmp_path / "out") for strict in (True, False)] == [1, 1]
    fine = replace(summary, failed=0)
    assert [status_of(fine, strict, tmp_path / "out") for strict in (True, False)] == [5, 0]


def test_a_journal_of_earlier_versions_is_read_with_its_manifests(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    warning = {"code": "x", "text": "too busy", "remedy": "", "suspect": True}
    manifest.write(tmp_path / "runs" / "a", {"state": "complete", "warnings": [warning]})
    (tmp_path / "runs" / "b").mkdir()
    manifest.write(tmp_path / "runs" / "b", {"state": "complete", "warnings": []})

    def why(cell: str) -> str | None:
        return journal.suspect(tmp_path, {"cell": cell, "run_dir": f"runs/{cell}", "state": "complete"})

    assert why("a") == "too busy" and why("b") is None
    assert why("gone") == "manifest.json is not there"
    (tmp_path / "runs" / "b" / "manifest.json").write_text("{")
    assert "cannot be read" in str(why("b"))


def test_a_seed_of_the_command_line_is_the_first_repetitions(settings: Settings) -> None:
    campaign_ = load_campaign(settings.file, {}, seed=41)
    assert {cell.seed for cell in campaign_.cells} == {41}
    wanted = campaign.described(replace(settings, seed=41), campaign_)
    assert wanted["seed"] == 41 and wanted["command"].endswith("--seed 41")
    assert "--lab other" in campaign.described(replace(settings, lab="other"), campaign_)["command"]
    assert campaign.compared(wanted, campaign.described(settings, campaign_)) == "seed: was 41, is None"


def test_the_time_left_is_of_as_many_cells_at_a_time_as_run(tmp_path: Path) -> None:
    done = {"cell": "c0", "state": "complete", "wall_s": 10.0, "suspect": None}
    journal.write_json(tmp_path / "campaign.json", {"cells": [{"cell": f"c{n}"} for n in range(6)]})
    assert status(tmp_path, jobs=2).left_s is None, "no cell is complete"
    journal.append(tmp_path, done)
    assert [status(tmp_path, jobs=jobs).left_s for jobs in (0, 1, 2, 4, 9)] == [50.0, 50.0, 30.0, 20.0, 10.0]
    for slot in ("a", "b"):
        journal.begin(tmp_path, {"cell": "c1", "run_dir": "runs/c1", "slot": slot})
    assert status(tmp_path).left_s == 30.0, "two are running"
