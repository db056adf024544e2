"""Tests that the live page starts, stops and resumes campaigns, with the real command and the fake driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import PROJECT
from page_lab import ORIGIN, served, wait_for
from starlette.testclient import TestClient

from orchestrator.campaign import journal
from orchestrator.cli.page.campaigns import headline

CAMPAIGN = """name: trial
segments: {lan: {subnet: 10.20.0.0/24}}
nodes:
  left: {segment: lan, software: {sender: {mqtt: {broker: right, publish: {topic: t, qos: 0, rate: 10 /s}}}}}
  right: {segment: lan, software: {mosquitto: {broker: mosquitto}}}
run: {hold: 2 s}
campaign: {repetitions: 2}
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    if not (PROJECT / "target/release/vnet-agent").exists():
        monkeypatch.setenv("VNET_AGENT", "/bin/true")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "trial.yaml").write_text(CAMPAIGN)
    yield served(tmp_path / "results")[0]
    wait_for(lambda: not running(tmp_path / "results" / "trial"))


def running(place: Path) -> bool:
    from orchestrator.cli.page.campaigns import how_it_runs

    return bool(how_it_runs(place)["running"])


def act(client: TestClient, action: str, wanted: Any) -> Any:
    return client.post(f"/api/campaigns/{action}", json=wanted, headers=ORIGIN)


def test_a_campaign_is_begun_and_says_its_figures(client: TestClient, tmp_path: Path) -> None:
    begun = act(client, "begin", {"file": "trial.yaml", "kernel": "fake"})
    assert begun.status_code == 200 and begun.json() == {"path": "trial"}, begun.text
    assert "there is a campaign of that name" in act(client, "begin", {"file": "trial.yaml"}).text

    def found() -> Any:
        return client.get("/api/campaign/trial").json()

    wait_for(lambda: not found()["running"])
    cells = found()["cells"]
    assert [cell["state"] for cell in cells] == ["complete", "complete"], found()
    assert all("CPU" in cell["headline"] for cell in cells), cells
    assert act(client, "stop", {"path": "trial"}).text == "trial: does not run"


def test_a_campaign_is_stopped_and_goes_on(client: TestClient, tmp_path: Path) -> None:
    place = tmp_path / "results" / "trial"
    with journal.locked(place):
        (place / "campaign.json").write_text("{}")
        assert "a terminal runs it" in act(client, "stop", {"path": "trial"}).text
        assert "runs already" in act(client, "resume", {"path": "trial"}).text
    (place / "campaign.json").unlink()
    (place / "lock").unlink()
    place.rmdir()
    assert act(client, "begin", {"file": "trial.yaml", "kernel": "fake"}).status_code == 200
    stopped = act(client, "stop", {"path": "trial"})
    assert stopped.status_code == 200 or "does not run" in stopped.text
    wait_for(lambda: not running(place))
    act(client, "resume", {"path": "trial"})
    wait_for(lambda: not running(place))
    assert all(c["state"] == "complete" for c in client.get("/api/campaign/trial").json()["cells"])


@pytest.mark.parametrize(
    ("action", "wanted", "status", "said"),
    [
        ("begin", {"file": "none.yaml"}, 409, "none.yaml"),
        ("begin", {"file": "trial.yaml", "kernel": "windows"}, 409, "give file"),
        ("begin", {"file": "trial.yaml", "parameters": {"speed": 1}}, 409, "speed"),
        ("begin", {}, 409, "give file"),
        ("resume", {"path": "../../etc"}, 404, "no such campaign"),
        ("stop", {"path": "nothing"}, 404, "no such campaign"),
        ("kill", {"path": "trial"}, 404, "no such change"),
        ("begin", [], 409, "not an object"),
    ],
)
def test_what_is_no_campaign_is_refused(
    client: TestClient, action: str, wanted: Any, status: int, said: str
) -> None:
    answer = act(client, action, wanted)
    assert answer.status_code == status and said in answer.text
    assert client.post(f"/api/campaigns/{action}", json=wanted).status_code == 403, "of no page of ours"


def test_guests_start_nothing(client: TestClient, tmp_path: Path) -> None:
    guest, _ = served(tmp_path / "results", read_only=True)
    for action in ("begin", "resume", "stop"):
        assert act(guest, action, {"file": "trial.yaml"}).status_code == 403
    assert list((tmp_path / "results").iterdir()) == []


def test_a_headline_is_of_what_a_run_has(tmp_path: Path) -> None:
    def said(*rows: tuple[str, Any, str]) -> str:
        found = [{"name": name, "value": value, "unit": unit} for name, value, unit in rows]
        (tmp_path / "summary.json").write_text(json.dumps(found))
        return headline(tmp_path)

    assert headline(tmp_path) == ""
    one = [("cpu", 0.733, "% of a core"), ("latency_p50", 20.475, "ms"), ("latency_p50", 99.0, "ms")]
    assert said(*one, ("messages_lost", 0.0, "messages")) == "p50 20.5 ms · lost 0 · CPU 0.733 %"
    assert said(("latency_p50", None, "ms")) == "" and said() == ""
    (tmp_path / "summary.json").write_text("{")
    assert headline(tmp_path) == ""
