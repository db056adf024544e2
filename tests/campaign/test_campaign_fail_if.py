"""Tests `vnet campaign run --fail-if`: checked before the first run, kept for a resumed campaign, judged
at the end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract import manifest
from orchestrator.campaign import campaign, cells
from orchestrator.campaign.campaign import run_campaign
from orchestrator.campaign.journal import CampaignError
from orchestrator.campaign.settings import Settings
from orchestrator.cli.campaign import _begun as begun
from orchestrator.cli.main import main
from orchestrator.run.run import Outcome
from orchestrator.topology import TopologyError

TOPOLOGY = """\
name: pair
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: lan, software: {out: {udp: {to: two, push: {rate: 1 /s, size: 100 B, class: up}}}}}
  two: {segment: lan, software: {in: {udp: {listen: 9000}}}}
run: {hold: 1 s}
"""
CONDITION = "latency_p99[class=up] > 5 ms"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(campaign, "_report", lambda *_: None)
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("VNET_AGENT", "/bin/true")
    (tmp_path / "pair.yaml").write_text(TOPOLOGY)
    path = tmp_path / "c.yaml"
    path.write_text("name: c\ncampaign: {topologies: [pair.yaml]}\n")
    return path


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--kernel", "host", "this campaign began with --kernel fake"),
        ("--time", "virtual", "this campaign began with --time real"),
        ("--lab", "other", "this campaign began with no --lab"),
    ],
)
def test_a_begun_campaign_keeps_its_kernel_lab_and_time(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    run_campaign(settings(file), tmp_path / "out", lambda _: None)
    assert main(["campaign", "run", str(tmp_path / "out"), option, value]) != 0
    assert said in " ".join(capsys.readouterr().err.split())


def settings(file: Path, *conditions: str) -> Settings:
    return Settings(file, {}, "fake", fail_if=conditions)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("latency_p9[class=up] > 5 ms", 'did you mean "latency_p99"?'),
        ("latency_p99[class=upp] > 5 ms", 'did you mean "up"?'),
        ("latency_p99[class=up] > 5", "--fail-if"),
        ("delivered exactly-once", "one bound on a metric"),
    ],
)
def test_a_wrong_condition_is_refused_before_anything_is_written(
    file: Path, tmp_path: Path, condition: str, said: str
) -> None:
    with pytest.raises(TopologyError) as refused:
        run_campaign(settings(file, condition), tmp_path / "out", lambda _: None)
    assert said in str(refused.value)
    assert not (tmp_path / "out" / "campaign.json").exists()


def test_each_run_plans_the_condition_and_a_resumed_campaign_keeps_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []

    def execute(prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
        planned.extend(one.text for one in prepared.plan.expectations)
        manifest.write(run_dir, {"state": "complete", "warnings": []})
        return Outcome(run_dir, "complete", False, None, (), None)

    monkeypatch.setattr(cells, "execute", execute)
    out = tmp_path / "out"
    run_campaign(settings(file, CONDITION), out, lambda _: None)
    assert planned == ["latency_p99 of class up at most 5 ms"]
    said = json.loads((out / "campaign.json").read_text())
    assert said["fail_if"] == [CONDITION] and f"--fail-if '{CONDITION}'" in said["command"]
    assert begun(out, {}, None, ())[0].fail_if == (CONDITION,)
    with pytest.raises(CampaignError, match=r"(?s)fail_if: was \['latency_p99.*vnet expect DIR --fail-if"):
        run_campaign(settings(file), out, lambda _: None)
