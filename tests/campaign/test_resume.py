"""A failed cell is recorded and the rest goes on; a killed cell's run is kept, marked, and run again."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import campaign, cells, journal, run
from orchestrator.campaign.campaign import run_campaign, status
from orchestrator.campaign.cells import recover
from orchestrator.campaign.run import Outcome
from orchestrator.campaign.settings import Settings

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
    """An `execute` that ends each hold's cell in the given state."""

    def execute(prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
        hold = prepared.plan.parameters["hold"]
        ran.append(hold)
        state = states.get(hold, "complete")
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
        """Stands for SIGKILL: nothing of ours runs after it."""

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
    """polars that has failed once is half there: without memory the words were of a name that it lacks."""

    def short(_: str) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory", "polars")

    monkeypatch.setattr(run.importlib, "import_module", short)
    told: list[object] = []
    loading = run.Loading(told.append)
    loading({"event": "phase", "phase": "collect"})
    loading.join()
    assert told == [{"event": "phase", "phase": "collect"}]
    with pytest.raises(OSError, match="Cannot allocate memory: 'polars'"):
        loading.check()
