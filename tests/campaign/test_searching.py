"""Tests a campaign that searches: outcomes of earlier runs choose the next ones, also after an
interruption.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import journal
from orchestrator.campaign.campaign import Summary, run_campaign
from orchestrator.campaign.searching import holds
from orchestrator.campaign.settings import Settings
from orchestrator.topology.search import Bound
from reports.metrics.metric import Metric, Of
from reports.rundir import Run

TOPOLOGY = """\
name: pair
parameters: {rate: {type: int, default: 1}, hold: {type: duration, default: 1 s}}
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: lan, software: {out: {udp: {to: two, push: {rate: "${rate} /s", size: 100 B, class: up}}}}}
  two: {segment: lan, software: {in: {udp: {listen: 9000}}}}
run: {hold: "${hold}"}
"""
CAMPAIGN = """\
name: fastest
campaign:
  topologies: [pair.yaml]
  factors: {hold: [1 s, 2 s]}
  search: {rate: {from: 10, to: 30, resolution: 30 %, WANTED}}
"""
WANTED = {
    "bounds": "holds: [{metric: messages_unsent, classes: [up], at_most: 5}]",
    "expectations": 'expect: ["messages_unsent[class=up] <= 5"]',
}
LIMITS = {"1 s": 15, "2 s": 1000}  # the highest rate (messages/s) at which a run keeps the bounds, by hold


def late(value: float) -> Metric:
    return Metric("messages_unsent", Of(traffic_class="up"), value, "messages", 1, None, None, "count")


def run(tmp_path: Path, stop_after: int = 100) -> Summary:
    ended = 0

    def observe(event: dict[str, Any]) -> None:
        nonlocal ended
        ended += event.get("event") == "cell-end"
        if ended == stop_after:
            raise KeyboardInterrupt

    settings = Settings(tmp_path / "fastest.yaml", {}, kernel="fake")
    return run_campaign(settings, tmp_path / "out", observe, page=False)


@pytest.fixture(params=WANTED)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    def measured(found: Run) -> list[Metric]:
        said = found.manifest.parameters
        return [late(5.0 if said["rate"] <= LIMITS[said["hold"]] else 5.1)]

    monkeypatch.setattr("reports.study.measured", measured)
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "pair.yaml").write_text(TOPOLOGY)
    (tmp_path / "fastest.yaml").write_text(CAMPAIGN.replace("WANTED", WANTED[request.param]))
    return tmp_path


def rates(directory: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in journal.lines(directory):
        if line["state"] == "complete":
            found.setdefault(line["levels"]["hold"], []).append(line["levels"]["rate"])
    return found


EXPECTED = {"1 s": [10, 20, 14], "2 s": [10, 20, 30]}


def test_each_combination_is_searched_by_itself_until_all_are_known(place: Path) -> None:
    summary = run(place)
    assert rates(place / "out") == EXPECTED
    assert (summary.cells, summary.complete, summary.left) == (6, 6, 0)
    cells = json.loads((place / "out" / "campaign.json").read_text())["cells"]
    assert [cell["cell"] for cell in cells[-2:]] == ["pair.p003.hold-1s.r1", "pair.p003.hold-2s.r1"]


def test_stopped_between_rounds_it_goes_on_where_it_was(place: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(place, stop_after=3)
    summary = run(place)
    assert rates(place / "out") == EXPECTED and summary.complete == 6
    assert run(place).complete == 6 and len(journal.lines(place / "out")) == 6, "nothing is run again"


def test_what_was_not_measured_is_not_kept() -> None:
    bound = Bound(metric="messages_unsent", classes=["up"], at_most=5)
    assert holds([bound], [late(5)]) and not holds([bound], [late(5.1)])
    assert not holds([bound], []) and not holds(
        [bound, Bound(metric="lost", classes=["up"], at_most=0)], [late(1)]
    )
    assert not holds([Bound(metric="messages_unsent", classes=["up", "down"], at_most=5)], [late(1)])
