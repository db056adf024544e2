"""Tests that suspect cells are run again, a limited number of times; every run is kept, and the last one
counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capture.disturbance import RULES
from contract import findings, manifest
from orchestrator.campaign import campaign, cells, journal
from orchestrator.campaign.campaign import Summary, run_campaign, status
from orchestrator.campaign.journal import CampaignError
from orchestrator.campaign.settings import Settings
from orchestrator.cli.campaign import said
from orchestrator.run.run import Outcome

PAIR = Path(__file__).resolve().parents[2] / "topologies" / "pair.yaml"
Execute = Any
WARNINGS = {
    "suspect": {"code": "trust-stalls", "text": "the machine was busy"},
    "dropping": {"code": "queue-drops", "text": "link wan forward: its queue dropped 9 packets"},
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = tmp_path / "c.yaml"
    block = f"topologies: [{PAIR}]\n  factors: {{hold: [1 s, 2 s]}}\n  rerun_suspect: 2\n"
    file.write_text(f"name: c\ncampaign:\n  {block}")
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("VNET_AGENT", "/bin/true")
    monkeypatch.setattr(campaign, "_report", lambda *_: None)
    return Settings(file, {}, "fake")


def doubtful(runs: dict[str, list[str]], ran: list[str]) -> Execute:
    """Returns an `execute` whose runs of each hold end as listed: good, suspect (by the machine), dropping
    (suspect by a full queue), failed or interrupted.
    """

    def execute(prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
        hold = prepared.plan.parameters["hold"]
        ran.append(hold)
        end = runs[hold].pop(0) if runs.get(hold) else "good"
        state = end if end in ("failed", "interrupted") else "complete"
        found = [{**WARNINGS[end], "suspect": True}] if end in WARNINGS else []
        manifest.write(run_dir, {"state": state, "suspect": bool(found), "warnings": found})
        return Outcome(run_dir, state, bool(found), "died" if state == "failed" else None, (), None)

    return execute


def run(settings: Settings, tmp_path: Path, seen: list[dict[str, Any]] | None = None) -> Summary:
    return run_campaign(settings, tmp_path / "out", (seen if seen is not None else []).append)


def test_a_suspect_cell_is_run_again_and_both_runs_are_kept(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", doubtful({"1 s": ["suspect"]}, ran))
    seen: list[dict[str, Any]] = []
    summary = run(settings, tmp_path, seen)
    assert ran == ["1 s", "2 s", "1 s"]
    assert [event["cells"] for event in seen if event["event"] == "again"] == [["pair.hold-1s.r1"]]
    assert not summary.suspect and summary.complete == 2
    assert summary.set_aside == {"pair.hold-1s.r1": ["runs/pair.hold-1s.r1"]}
    assert journal.latest(tmp_path / "out")["pair.hold-1s.r1"]["run_dir"] == "runs/pair.hold-1s.r1-2"
    assert (tmp_path / "out" / "runs" / "pair.hold-1s.r1" / "manifest.json").exists()
    assert said(summary) == "2 of 2 runs complete, 1 suspect run set aside"


def test_it_is_run_again_so_many_times_and_not_more(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", doubtful({"2 s": ["suspect"] * 9}, ran))
    summary = run(settings, tmp_path)
    assert ran == ["1 s", "2 s", "2 s", "2 s"] and list(summary.suspect) == ["pair.hold-2s.r1"]
    run(settings, tmp_path)
    assert len(ran) == 4, "the bound counts the runs of all commands"


def test_a_run_that_fails_when_made_again_counts_as_failed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "execute", doubtful({"2 s": ["suspect", "failed"]}, []))
    summary = run(settings, tmp_path)
    assert (summary.complete, summary.failed) == (1, 1)
    assert summary.set_aside == {"pair.hold-2s.r1": ["runs/pair.hold-2s.r1"]}


def test_one_that_was_stopped_goes_on(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", doubtful({"1 s": ["suspect", "interrupted"]}, ran))
    assert run(settings, tmp_path).interrupted and status(tmp_path / "out").left == 1
    assert run(settings, tmp_path).complete == 2
    assert ran == ["1 s", "2 s", "1 s", "1 s"]


def test_only_the_machine_makes_a_run_be_made_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a run with a full queue is not repeated: the full queue is a result of the campaign, and a
    repetition would make the results better than they are.
    """
    ran: list[str] = []
    ends = {"1 s": ["dropping", "good"], "2 s": ["suspect", "dropping", "good"]}
    monkeypatch.setattr(cells, "execute", doubtful(ends, ran))
    summary = run(settings, tmp_path)
    assert ran == ["1 s", "2 s", "2 s"]
    assert summary.suspect == dict.fromkeys(
        ("pair.hold-1s.r1", "pair.hold-2s.r1"), WARNINGS["dropping"]["text"]
    )
    assert summary.set_aside == {"pair.hold-2s.r1": ["runs/pair.hold-2s.r1"]}
    lines = journal.lines(tmp_path / "out")
    assert [line.get("disturbed") for line in lines] == [None, "the machine was busy", None]


def test_every_check_of_disturbances_is_about_the_machine() -> None:
    assert {f"trust-{name}" for name in RULES} <= findings.OF_MACHINE
    assert not {"queue-drops", "sessions", "node-failed", "exited", "changed"} & findings.OF_MACHINE


def test_a_resumed_campaign_ends_its_order_before_it_runs_a_suspect_cell_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(cells, "execute", doubtful({"1 s": ["suspect"], "2 s": ["interrupted"]}, ran))
    assert run(settings, tmp_path).interrupted
    assert run(settings, tmp_path).complete == 2
    assert ran == ["1 s", "2 s", "2 s", "1 s"]


@pytest.mark.parametrize("other", ["rerun_suspect: 9", "rerun_suspect: 2\n  order: random"])
def test_a_campaign_that_grows_keeps_its_order_and_how_often_it_repeats(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Shows that a campaign with more repetitions than before repeats a suspect cell as often as before;
    otherwise the number of finished runs would decide about further ones.
    """
    monkeypatch.setattr(cells, "execute", doubtful({}, []))
    run(settings, tmp_path)
    text = settings.file.read_text().replace("[1 s, 2 s]", "[1 s, 2 s, 3 s]")
    settings.file.write_text(text.replace("rerun_suspect: 2", other))
    with pytest.raises(CampaignError, match="begun with other content"):
        run(settings, tmp_path)
    settings.file.write_text(text)
    assert run(settings, tmp_path).complete == 3, "a further level alone is taken"
