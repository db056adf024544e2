"""Tests a campaign with `until`: each setting is repeated until its interval is narrow, up to a limit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contract import manifest
from contract.enough import Enough
from contract.plan import Expectation
from orchestrator.campaign import cells, journal
from orchestrator.campaign.campaign import Summary, run_campaign
from orchestrator.campaign.repeating import rule_of
from orchestrator.campaign.settings import Settings
from orchestrator.plan.build import make_plan
from orchestrator.run.run import Outcome
from orchestrator.topology import TopologyError, load_campaign
from reports.enough import known_mean as judged
from reports.metrics.metric import Metric, Of

TOPOLOGY = """\
name: pair
parameters: {hold: {type: duration, default: 1 s}}
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: lan, software: {out: {udp: {to: two, push: {rate: 1 /s, size: 100 B, class: up}}}}}
  two: {segment: lan, software: {in: {udp: {listen: 9000}}}}
run: {hold: "${hold}"}
"""
CAMPAIGN = """\
name: enough
campaign:
  topologies: [pair.yaml]
  factors: {hold: [1 s, 2 s]}
  until: {metric: "latency_p99[class=up]", interval: 20 %, at_most: 6}
"""
RULE = Enough(Expectation("latency_p99", "metric", "latency_p99", unit="ms"), 0.05, 3, 20)


def test_the_looks_grow_by_a_third_and_share_the_error() -> None:
    assert RULE.looks == (3, 4, 6, 8, 11, 15, 20)
    assert RULE.confidence == pytest.approx(1 - 0.05 / 7)
    assert Enough(RULE.metric, 0.05, 5, 5).looks == (5,), "one look needs no correction"
    assert Enough(RULE.metric, 0.05, 5, 5).confidence == 0.95


def stopped(rng: np.random.Generator, scatter: float, rule: Enough) -> tuple[float, float, bool]:
    """Returns what a setting has when it ends, if its true mean is 100: the mean, half the interval, and the
    answer.
    """
    drawn = rng.normal(100, scatter, rule.at_most)
    for look in rule.looks:
        found = judged("up", "ms", list(drawn[:look]), rule, False)
        if found.enough:
            break
    assert found.half is not None
    return found.mean, found.half, found.enough


@pytest.mark.parametrize("scatter", [3.0, 8.0, 20.0])
def test_the_interval_where_a_setting_ends_misses_the_mean_in_at_most_one_of_twenty(scatter: float) -> None:
    rng = np.random.default_rng(7)
    ends = [stopped(rng, scatter, RULE) for _ in range(600)]
    missed = sum(abs(mean - 100) > half for mean, half, _ in ends) / len(ends)
    assert missed < 0.05, "0.05 by the bound; a look without correction misses twice as often"
    assert all(half <= 0.05 * mean for mean, half, enough in ends if enough)


def test_equal_counts_are_not_certain_and_a_mean_of_zero_has_no_share() -> None:
    assert not judged("up", "messages", [4.0, 4.0, 4.0], RULE, True).enough
    assert judged("up", "ms", [4.0, 4.0, 4.0], RULE, False).enough
    assert not judged("up", "messages", [0.0, 0.0, 0.0], RULE, True).enough
    assert not judged("up", "ms", [4.0], RULE, False).enough


def test_a_value_that_some_runs_did_not_measure_is_never_known_well_enough() -> None:
    found = judged("up", "ms", [4.0, 4.0, 4.0], RULE, False, runs=5)
    assert not found.enough and "after 3 of 5 repetitions" in found.text


def run(tmp_path: Path, stop_after: int = 100) -> Summary:
    ended = 0

    def observe(event: dict[str, Any]) -> None:
        nonlocal ended
        ended += event.get("event") == "cell-end"
        if ended == stop_after:
            raise KeyboardInterrupt

    settings = Settings(tmp_path / "enough.yaml", {}, kernel="fake")
    return run_campaign(settings, tmp_path / "out", observe, page=False)


def execute(prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
    """Writes a run that ends at once; `study` computes its value from hold and seed."""
    hold, seed = prepared.plan.parameters["hold"], prepared.plan.seed
    manifest.write(run_dir, {"state": "complete", "seed": seed, "parameters": {"hold": hold}, "warnings": []})
    return Outcome(run_dir, "complete", False, None, (), None)


def study(run_dir: Path) -> Any:
    """Returns a study of the cell that `execute` wrote, whose value for the hold of 1 s is near 100, and for
    the hold of 2 s 60 above or below it.
    """
    found = manifest.read(run_dir)
    value = 100 + {"1 s": 0.1, "2 s": 60.0}[found["parameters"]["hold"]] * (-1.0) ** found["seed"]
    metric = Metric("latency_p99", Of(traffic_class="up"), value, "ms", 9, None, None, "nearest rank")
    return SimpleNamespace(cells=(SimpleNamespace(run=None, metrics=[metric]),))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cells, "execute", execute)
    monkeypatch.setattr("reports.study.study_of_run", study)
    monkeypatch.setattr("reports.expect.values.held_messages", lambda _: None)
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("VNET_AGENT", "/bin/true")
    (tmp_path / "pair.yaml").write_text(TOPOLOGY)
    (tmp_path / "enough.yaml").write_text(CAMPAIGN)
    return tmp_path


def test_each_setting_ends_by_itself_also_when_the_campaign_was_stopped(place: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(place, stop_after=7)
    summary = run(place)
    complete = [
        line["levels"]["hold"] for line in journal.lines(place / "out") if line["state"] == "complete"
    ]
    assert Counter(complete) == {"1 s": 3, "2 s": 6}, "the second is never narrow and ends at the bound"
    assert (summary.cells, summary.complete, summary.left) == (9, 9, 0)
    begun = json.loads((place / "out" / "campaign.json").read_text())
    assert begun["repetitions"] == 6 and begun["until"]["at_most"] == 6
    assert run(place).complete == 9 and len(journal.lines(place / "out")) == 9, "nothing is run again"


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("{metric: latency_p9, interval: 5 %, at_most: 9}", 'did you mean "latency_p99"?'),
        ("{metric: latency_p99, link: wan, interval: 5 %, at_most: 9}", "latency_p99 is not of a link"),
        (
            "{metric: latency_p99, interval: 0 %, at_most: 9}",
            "campaign.until.interval: 0.0: must be more than 0;",
        ),
        ("{metric: latency_p99, interval: 100 %, at_most: 9}", "must be less than 1;"),
        ("{metric: latency_p99, interval: 5 %, at_most: 2}", "is less than `at_least` (3)"),
        ("{metric: latency_p99, interval: 5 %}", "campaign.until.at_most"),
        (
            "{metric: latency_p99, interval: 5 %, at_most: 9}\n  repetitions: 3",
            "conflicts with `repetitions`",
        ),
        ('{metric: "latency_p99[class=up]", class: up, interval: 5 %, at_most: 9}', "and as a key"),
        ('{metric: "latency_p99[class=up] < 5 ms", interval: 5 %, at_most: 9}', "below"),
        ("{metric: latency-p99, interval: 5 %, at_most: 9}", 'did you mean "latency_p99"?'),
        ("{metric: latency_p99, interval: 5 %, at_most: 1}", "must be at least 2"),
        ("{metric: recovery, interval: 5 %, at_most: 9}", "write `after: LABEL`"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(tmp_path: Path, until: str, said: str) -> None:
    (tmp_path / "pair.yaml").write_text(TOPOLOGY)
    path = tmp_path / "c.yaml"
    path.write_text(f"name: c\ncampaign:\n  topologies: [pair.yaml]\n  until: {until}\n")
    with pytest.raises(TopologyError) as refused:
        load_campaign(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "until",
    [
        '{metric: "latency_p99[class=up] during rain", interval: 5 %, at_most: 9}',
        "{metric: latency_p99 during rain, class: up, interval: 5 %, at_most: 9}",
        "{metric: latency_p99, class: up, during: rain, interval: 5 %, at_most: 9}",
    ],
)
def test_a_rule_is_written_as_an_expectation_is(tmp_path: Path, until: str) -> None:
    event = "timeline: [{at: hold + 100 ms, kill: one, for: 100 ms, label: rain}]\n"
    (tmp_path / "pair.yaml").write_text(TOPOLOGY + event)
    path = tmp_path / "c.yaml"
    path.write_text(f"name: c\ncampaign:\n  topologies: [pair.yaml]\n  until: {until}\n")
    rule = rule_of(load_campaign(path))
    assert rule is not None
    assert rule.metric.text == "latency_p99 of class up during rain"
    assert (rule.metric.of, rule.metric.during) == ({"traffic_class": "up"}, "rain")


def test_classes_are_checked_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(TOPOLOGY)
    path = tmp_path / "c.yaml"
    path.write_text(CAMPAIGN.replace("class=up", "class=upp"))
    with pytest.raises(TopologyError, match=r'campaign\.until\.class: "upp".*did you mean "up"'):
        make_plan(load_campaign(path).cells[0].loaded)
