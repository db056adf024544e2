"""Tests that expectations are judged on intervals (holds, fails, cannot tell), and that page, terminal, JUnit
and exit status agree.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from judging import cell_of, judgement, verdict
from synthetic import write_campaign, write_run
from synthetic_shape import CLASS, Shape

from contract.codec import to_json
from contract.plan import Bounds, Expectation
from contract.rundir import VERDICTS, read_plan
from orchestrator.cli.headlines import expectations
from orchestrator.cli.run import judged_status
from reports import judged, verdicts
from reports.cell import Cell
from reports.expect import bootstrap, judge
from reports.expect.values import Value
from reports.junit import junit
from reports.metrics.links import link_metrics
from reports.report import report
from reports.study import study_of_campaign

DOWN = "link uplink down"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    shape = Shape(clients=5, ramp_s=5, hold_s=60, loss=0.01, qos=2)
    return cell_of(write_run(tmp_path_factory.mktemp("expect") / "run", shape))


def measured(run: Cell, name: str) -> float:
    return next(m.value for m in run.metrics if m.name == name and m.of.traffic_class == CLASS)


def test_a_percentile_is_judged_by_its_interval(run: Cell) -> None:
    at = measured(run, "latency_p99")
    latency = {"name": "latency_p99", "unit": "ms"}
    assert verdict(run, **latency, bounds=Bounds(below=10 * at)) == "holds"
    assert verdict(run, **latency, bounds=Bounds(below=at / 10)) == "fails"
    word, reason = judgement(run, **latency, bounds=Bounds(below=at * 1.0001))
    assert word == "cannot tell" and "a longer hold or more repetitions would tell" in reason


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        (Bounds(above=1), "holds"), (Bounds(above=2), "cannot tell"), (Bounds(above=3), "fails"),
        (Bounds(at_least=2), "holds"), (Bounds(at_least=3.1), "fails"), (Bounds(below=3), "cannot tell"),
        (Bounds(at_most=3), "holds"), (Bounds(below=2), "fails"), (Bounds(at_most=1.9), "fails"),
        (Bounds(above=1, below=4), "holds"), (Bounds(above=1, below=2.5), "cannot tell"),
        (Bounds(above=2.5, below=1), "fails"),
    ],
)  # fmt: skip
def test_holds_needs_the_whole_interval(bounds: Bounds, word: str) -> None:
    value = Value("x", 2.5, 2.0, 3.0, "ms", False, 9, "method")
    assert judge.of_value(value, bounds).verdict == word


def test_without_an_upper_border_nothing_is_below() -> None:
    value = Value("x", 2.5, 2.0, None, "ms", False, 9, "method")
    assert judge.of_value(value, Bounds(below=99)).verdict == "cannot tell"
    assert judge.of_value(value, Bounds(below=2)).verdict == "fails"


def test_counts_are_exact(run: Cell) -> None:
    lost = measured(run, "messages_lost")
    assert lost > 0
    count = {"name": "messages_lost", "unit": "messages"}
    assert verdict(run, **count, bounds=Bounds(at_most=lost)) == "holds"
    assert verdict(run, **count, bounds=Bounds(below=lost)) == "fails"


def test_what_is_not_there_cannot_be_told(run: Cell) -> None:
    word, reason = judgement(run, name="messages_lost", unit="messages", of={"traffic_class": "other"})
    assert word == "cannot tell" and "no messages_lost was measured" in reason
    word, reason = judgement(run, name="latency_p99", unit="ms", bounds=Bounds(below=1), after="rain")
    assert word == "cannot tell" and "rain did not happen" in reason
    assert verdict(run, subject="log", name="client1", mode="never", pattern="error") == "cannot tell"


def test_during_narrows_to_the_event(run: Cell) -> None:
    """Shows that `during` judges only the time from the event to the end of the hold, which has fewer
    messages.
    """
    whole = measured(run, "messages_scheduled")
    count = {"name": "messages_scheduled", "unit": "messages"}
    assert verdict(run, **count, bounds=Bounds(at_least=whole)) == "holds"
    assert verdict(run, **count, bounds=Bounds(at_least=whole), after=DOWN) == "fails"
    assert verdict(run, **count, bounds=Bounds(above=0, below=whole), after=DOWN) == "holds"


def test_series(run: Cell) -> None:
    count = {"name": "messages_received", "unit": "messages", "mode": "eventually"}
    assert verdict(run, **count, bounds=Bounds(above=100)) == "holds"
    assert verdict(run, **count, bounds=Bounds(above=100), within_ns=10**9) == "fails"
    assert verdict(run, **count, bounds=Bounds(above=10**9)) == "fails"
    word, reason = judgement(run, **count, bounds=Bounds(above=10**9), within_ns=10**13)
    assert word == "cannot tell" and "not yet when the time ended" in reason
    latency = {"name": "latency_p99", "unit": "ms"}
    assert verdict(run, **latency, mode="always", bounds=Bounds(below=10**6)) == "holds"
    assert verdict(run, **latency, mode="never", bounds=Bounds(above=10**6)) == "holds"
    assert verdict(run, **latency, mode="never", bounds=Bounds(above=0)) == "fails"
    word, reason = judgement(run, **latency, mode="always", bounds=Bounds(below=0.001))
    assert word == "fails" and "first" in reason
    cpu = {"name": "cpu", "unit": "% of a core", "of": {"nodes": "broker"}, "mode": "always"}
    assert verdict(run, **cpu, bounds=Bounds(below=10**6)) == "holds"
    link = {"name": "throughput", "unit": "Mbit/s", "of": {"link": "uplink"}, "mode": "always"}
    assert verdict(run, **link, bounds=Bounds(at_least=0)) == "holds"


def test_a_series_of_counts_ends_at_the_count_of_the_run(run: Cell) -> None:
    for fate in ("scheduled", "sent", "received", "lost", "expected", "duplicated", "reordered"):
        name = f"messages_{fate}"
        value = measured(run, name)
        exactly = {"name": name, "unit": "messages", "bounds": Bounds(at_least=value, at_most=value)}
        assert verdict(run, **exactly, mode="eventually") == "holds", fate


def test_delivered(run: Cell, tmp_path: Path) -> None:
    word, reason = judgement(run, subject="delivered", name="exactly-once")
    assert word == "fails" and "lost" in reason
    assert verdict(run, subject="delivered", name="at-most-once") == "holds"
    assert verdict(run, subject="delivered", name="exactly-once", of={}) == "fails"
    good = write_run(tmp_path / "good", Shape(clients=3, ramp_s=3, hold_s=8))
    assert verdict(cell_of(good), subject="delivered", name="exactly-once") == "holds"
    table = pl.read_parquet(good / "messages.parquet")
    copies = pl.when(pl.int_range(pl.len()) == 5).then(2).otherwise("copies").cast(pl.Int64)
    table.with_columns(copies=copies).write_parquet(good / "messages.parquet")
    assert verdict(cell_of(good), subject="delivered", name="at-least-once") == "holds"
    word, reason = judgement(cell_of(good), subject="delivered", name="exactly-once")
    assert word == "fails" and "1 twice" in reason


def test_logs(run: Cell) -> None:
    logs = run.run.path / "raw" / "logs"
    logs.mkdir(parents=True)
    (logs / "broker.mosquitto.log").write_text("starting\n1790: Error: no room\n")
    log = {"subject": "log", "name": "broker"}
    word, reason = judgement(run, **log, mode="never", pattern="error")
    assert word == "fails" and "raw/logs/broker.mosquitto.log:2: 1790: Error: no room" in reason
    assert verdict(run, **log, mode="never", pattern="panic") == "holds"
    assert verdict(run, **log, mode="eventually", pattern="^start") == "holds"
    assert verdict(run, **log, mode="eventually", pattern="ready") == "fails"
    none = log | {"name": "client1"}
    assert judgement(run, **none, mode="eventually", pattern="x") == (
        "cannot tell", "there is no log of client1 in raw/logs",
    )  # fmt: skip


def test_events(run: Cell) -> None:
    event = {"subject": "event", "of": {}}
    assert verdict(run, **event, name=DOWN, mode="eventually") == "holds"
    assert verdict(run, **event, name=DOWN, mode="never") == "fails"
    assert verdict(run, **event, name="failed", mode="never") == "holds"
    assert verdict(run, **event, name="failed", mode="eventually") == "fails"


def test_steps_of_sessions_are_judged_by_group_and_by_what_their_records_say(tmp_path: Path) -> None:
    run = cell_of(write_run(tmp_path / "run", Shape(clients=2, ramp_s=2, hold_s=10)))
    sessions = pl.read_parquet(run.run.path / "sessions.parquet")
    (node, *_) = (node for node in run.run.plan.nodes if any(s.session for s in node.software))
    (own, *_) = (s.session.endpoint for s in node.software if s.session)
    said = pl.when(pl.col("endpoint") == own).then(pl.lit("By plan")).otherwise(pl.col("detail"))
    sessions.with_columns(detail=said).write_parquet(run.run.path / "sessions.parquet")
    run = cell_of(run.run.path)
    step = {"subject": "event", "name": "disconnected", "mode": "eventually"}
    other = next(n.group for n in run.run.plan.nodes if n.group != node.group and n.software[0].session)
    for group, pattern, expected in (
        (node.group, "", "holds"), (node.group, "^by PLAN$", "holds"), (node.group, "lost", "fails"),
        (other, "", "holds"), (other, "by plan", "fails"),
    ):  # fmt: skip
        assert verdict(run, **step, of={"group": group}, pattern=pattern) == expected, (group, pattern)


def test_the_bootstrap_keeps_correlation() -> None:
    """Shows that the interval of a correlated series is wider than that of the same values shuffled, and
    covers the mean.
    """
    random, n, covered, wide = np.random.default_rng(7), 4000, 0, 0
    for _ in range(20):
        noise = random.normal(size=n)
        series = np.empty(n)
        series[0] = noise[0]
        for k in range(1, n):
            series[k] = 0.9 * series[k - 1] + noise[k]
        shuffled = series.copy()
        random.shuffle(shuffled)
        one, other = bootstrap.interval(series, None), bootstrap.interval(shuffled, None)
        assert (
            one.low is not None and one.high is not None and other.low is not None and other.high is not None
        )
        covered += one.low <= 0 <= one.high
        wide += one.high - one.low > 2 * (other.high - other.low)
    # fewer than 16 of 20 intervals of 95 % cover the mean once in 400 series
    assert wide == 20 and covered >= 16


def test_few_messages_give_no_upper_border_of_a_high_percentile() -> None:
    values = np.random.default_rng(1).exponential(size=200)
    assert bootstrap.interval(values, 0.99).high is None
    assert bootstrap.interval(values, 0.5).high is not None
    assert bootstrap.interval(values[:10], 0.5).low is None


def test_flows_that_alternate_are_each_correlated() -> None:
    """Shows that blocks span the correlation of each flow when the messages of several flows alternate:
    neighbouring messages are independent, so without `flows` the length would be the least one.
    """
    random, flows = np.random.default_rng(3), 20
    series = np.zeros((400, flows))
    for k in range(1, len(series)):
        series[k] = 0.8 * series[k - 1] + random.normal(size=flows)
    values = series.ravel()
    assert bootstrap.block_length(values, 1) == 20, "the least length: neighbours are independent"
    assert bootstrap.block_length(values, flows) > 3 * flows


def test_a_pattern_that_repeats_has_an_interval() -> None:
    found = bootstrap.interval(np.tile([1.0, 2.0], 500), None)
    assert found.low is not None and found.high is not None and found.low <= 1.5 <= found.high
    assert found.high - found.low < 0.1


def test_a_long_event_does_not_widen_what_it_does_not_touch() -> None:
    """Shows that a jump of the values during an event does not widen the intervals outside it: blocks of the
    bootstrap end at the event.
    """
    random = np.random.default_rng(5)
    values = np.concatenate([10 + random.random(600), 30 + random.random(500), 10 + random.random(400)])
    assert bootstrap.interval(values, None).low is None
    assert bootstrap.interval(values, 0.5).high is None
    mean = bootstrap.interval(values, None, borders=[600, 1100])
    assert mean.low is not None and mean.high is not None and mean.low < values.mean() < mean.high
    assert mean.high - mean.low < 0.2 and "between events" in mean.method
    walk = np.concatenate([values, 50 + np.cumsum(random.normal(size=100))])
    median = bootstrap.interval(walk, 0.5, borders=[600, 1100, 1500])
    assert median.low is not None and median.high is not None and median.low <= median.value <= median.high


def test_nodes_without_samples_are_not_within_a_bound(run: Cell) -> None:
    table = run.run.table("nodes")
    assert table is not None
    node = table.get_column("node")[0]
    hold = run.run.manifest.phases["hold"]
    dead = (pl.col("node") == node) & (pl.col("t_ns") > hold[0])
    tables = {**run.run.tables, "nodes": table.filter(~dead)}
    cut = replace(run, run=replace(run.run, tables=tables))
    cpu = {"name": "cpu", "unit": "% of a core", "of": {}, "mode": "always", "bounds": Bounds(below=10**6)}
    assert verdict(run, **cpu) == "holds"
    word, reason = judgement(cut, **cpu)
    assert word == "cannot tell" and "no sample for" in reason


def test_a_link_that_carried_little_is_judged_too(run: Cell) -> None:
    """Shows that the quietest of fourteen links is judged, though summary.json has only the twelve
    busiest.
    """
    table = run.run.table("links")
    assert table is not None
    growing = pl.int_range(pl.len()).over("direction") * 5
    table = table.with_columns(packets=growing, dropped=pl.lit(0, pl.Int64))
    quiet = {"link": pl.lit("quiet"), "bps": pl.col("bps") * 0, "dropped": growing}
    copies = [table, *(table.with_columns(link=pl.lit(f"copy{k}")) for k in range(12))]
    many = pl.concat([*copies, table.with_columns(**quiet)], how="vertical_relaxed")
    changed = replace(run.run, tables={**run.run.tables, "links": many})
    cell = replace(run, run=changed, metrics=link_metrics(changed))
    dropped = {"name": "link_dropped", "unit": "packets", "bounds": Bounds(at_most=0)}
    assert "quiet" not in {m.of.link for m in cell.metrics}
    assert verdict(cell, **dropped, of={"link": "copy1"}) == "holds"
    for of in ({"link": "quiet"}, {}):
        assert verdict(cell, **dropped, of=of) == "fails"
    assert verdict(cell, **dropped, of={}, after=DOWN) == "fails"


def expecting(run: Path, *stated: Expectation) -> Path:
    (run / "plan.json").write_text(to_json(replace(read_plan(run), expectations=stated)))
    return run


GOOD = Expectation(
    "messages_sent above 0", "metric", "messages_sent", bounds=Bounds(above=0), unit="messages"
)
BAD = Expectation("messages_sent below 1", "metric", "messages_sent", bounds=Bounds(below=1), unit="messages")
OPEN = Expectation("log of broker never x", "log", "broker", mode="never", pattern="x")


@pytest.mark.parametrize(
    ("stated", "status", "first", "banner"),
    [
        ((GOOD,), 0, "The expectation holds.", "good"),
        ((GOOD, OPEN), 8, "1 of 2 expectations cannot be told.", "open"),
        ((GOOD, BAD, OPEN), 7, "1 of 3 expectations fails, 1 cannot be told.", "bad"),
    ],
)
def test_everybody_says_the_same(
    tmp_path: Path, stated: tuple[Expectation, ...], status: int, first: str, banner: str
) -> None:
    run = expecting(write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8)), *stated)
    page = report(run).read_text()
    assert f'<p class="banner {banner}"><strong>{first}</strong>' in page
    assert page.index('id="expect"') < page.index('id="trust"'), "the answer comes first"
    assert expectations(judged.summary(run).expectations)[0][0] == first
    assert judged_status(run, suspect=False, strict=False) == status
    assert judged_status(run, suspect=True, strict=True) == 5
    written = [
        one["verdict"]
        for one in json.loads((run / VERDICTS).read_text())["verdicts"]
        if one["of"] == "expectation"
    ]
    cases = [
        c
        for c in ElementTree.fromstring(junit(run).encode()).iter("testcase")
        if "expectation" in str(c.get("classname"))
    ]
    assert [c.get("name") for c in cases] == [one.text for one in stated]
    words = {None: "holds", "failure": "fails", "skipped": "cannot tell"}
    assert [words[next((e.tag for e in c if e.tag in words), None)] for c in cases] == written


def test_a_run_without_expectations_says_nothing_of_them(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))
    assert 'id="expect"' not in report(run).read_text()
    assert expectations(judged.summary(run).expectations) == []
    assert judged_status(run, suspect=False, strict=False) == 0


def test_a_campaign_is_judged_over_its_seeds(tmp_path: Path) -> None:
    shapes = [
        Shape(clients=3, ramp_s=3, hold_s=8, qos=qos, seed=seed) for qos in (0, 1) for seed in (1, 2, 3)
    ]
    directory = write_campaign(tmp_path / "campaign", shapes)
    lines = [json.loads(line) for line in (directory / "cells.jsonl").read_text().splitlines()]
    (directory / "campaign.json").write_text(json.dumps({"name": "c", "cells": lines}))
    cells = study_of_campaign(directory).cells
    values = [m.value for c in cells for m in c.metrics if m.name == "latency_p50"]
    between = Expectation(
        "latency_p50", "metric", "latency_p50", bounds=Bounds(below=float(np.median(values))), unit="ms"
    )
    above = replace(between, text="all", bounds=Bounds(below=100 * max(values)))
    for line in lines:
        expecting(directory / line["run_dir"], between, above, GOOD)
    verdicts.write(study_of_campaign(directory))
    found = judged.of(directory, "expectation")
    assert found is not None and len(found) == 6, "each of three in each of two conditions"
    assert all(one.verdict == "holds" for one in found if one.name.endswith(("all", "above 0")))
    assert any("t interval over 3 repetitions" in one.reason for one in found), found
    counts = judged.known(directory)["expectation"]
    assert sum(counts.values()) == 6, "runs are not counted beside the campaign"
    suites = ElementTree.fromstring(junit(directory).encode()).findall("testsuite")
    of_runs = [
        c for s in suites[:-1] for c in s.iter("testcase") if str(c.get("classname")).endswith(".expectation")
    ]
    assert (
        of_runs == []
        and len([c for c in suites[-1] if str(c.get("classname")).endswith(".expectation")]) == 6
    )
    small = Expectation("p99", "metric", "latency_p99", bounds=Bounds(below=10**6), unit="ms")
    few = list(verdicts.on_conditions(study_of_campaign(directory), lambda _plan: (small,)))
    assert {one.verdict for one in few} == {"cannot tell"}, "each repetition has too few messages for a p99"
    assert "messages does not bound it" in few[0].reason
    rest = "\n".join(json.dumps(line) for line in lines[1:])
    (directory / "cells.jsonl").write_text(rest + "\n")
    last = list(verdicts.on_conditions(study_of_campaign(directory), lambda _plan: (GOOD,)))[-1]
    assert (last.verdict, last.reason) == (
        "cannot tell", f"1 of 6 runs are not complete: {lines[0]['cell']}",
    )  # fmt: skip
    again = list(verdicts.on_conditions(study_of_campaign(directory), lambda _plan: (BAD,)))
    assert [one.verdict for one in again] == ["fails", "fails", "cannot tell"]
