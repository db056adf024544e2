"""Tests expectations that a run cannot decide: messages not sent or not arrived, events that are not over,
and missing intervals.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
from judging import OF, altered, cell_of, judgement, verdict
from synthetic import write_run
from synthetic_shape import Shape

from contract.plan import Bounds, Expectation
from reports.expect import judge


def test_where_nothing_was_sent_nothing_is_lost_or_kept(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))
    none = pl.lit(None, pl.Int64)
    run = altered(directory, sent_ns=none, received_ns=none, latency_ns=none)
    count = {"name": "messages_lost", "unit": "messages", "bounds": Bounds(at_most=0)}
    assert judgement(run, **count) == ("cannot tell", "no message was sent")
    several = judge.of_repetitions(
        [run, replace(run, repetition=2)], Expectation("x", "metric", of=OF, **count)
    )
    assert several.verdict == "cannot tell" and "no message was sent" in several.reason
    assert verdict(run, subject="delivered", name="exactly-once") == "cannot tell"
    assert verdict(run, **count | {"name": "messages_received", "bounds": Bounds(at_least=1)}) == "fails"


def test_an_interval_without_messages_is_no_good_one(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=20))
    hold = json.loads((directory / "manifest.json").read_text())["phases"]["hold"]
    silent = pl.col("scheduled_ns").is_between(hold[0] + 5 * 10**9, hold[0] + 9 * 10**9)
    gone = {
        c: pl.when(silent).then(None).otherwise(pl.col(c)).alias(c) for c in ("received_ns", "latency_ns")
    }
    run = altered(directory, **gone)
    latency = {"name": "latency_p50", "unit": "ms", "mode": "always"}
    word, reason = judgement(run, **latency, bounds=Bounds(below=10**6), every_ns=2 * 10**9)
    assert word == "cannot tell" and "of 10 intervals has a latency" in reason
    assert verdict(run, **latency, bounds=Bounds(below=10**6), every_ns=10**10) == "holds"
    assert verdict(run, **latency, bounds=Bounds(below=0.001)) == "fails"


def test_a_class_that_lost_everything_has_no_good_latency(tmp_path: Path) -> None:
    """Shows that no bound on latency holds if one class lost everything, although the other class is within
    the bound.
    """
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=20))
    gone = pl.int_range(pl.len()) % 2 == 0
    columns = {
        c: pl.when(gone).then(None).otherwise(pl.col(c)).alias(c) for c in ("received_ns", "latency_ns")
    }
    run = altered(directory, **{"class": pl.when(gone).then(pl.lit("dead")).otherwise("class")}, **columns)
    latency = {"name": "latency_p50", "unit": "ms", "bounds": Bounds(below=10**6)}
    assert verdict(run, **latency) == "holds"
    for mode in ("value", "always", "eventually"):
        word, reason = judgement(run, **latency, mode=mode, of={})
        assert word == "cannot tell" and "none of" in reason and "messages arrived" in reason, mode
    assert verdict(run, **latency | {"bounds": Bounds(below=0.001)}, of={}) == "fails"
    several = judge.of_repetitions([run, replace(run, repetition=2)], Expectation("x", "metric", **latency))
    assert several.verdict == "cannot tell" and "none of" in several.reason


def test_a_class_of_which_nothing_arrived_has_not_recovered(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=30))
    none = pl.lit(None, pl.Int64)
    run = altered(directory, received_ns=none, latency_ns=none)
    labels = {event.label for event in run.run.plan.events}
    recovery = {"name": "recovery", "unit": "s", "bounds": Bounds(below=99)}
    words = [judgement(run, **recovery, after=label) for label in labels]
    assert {word for word, _ in words} == {"cannot tell"}
    assert any("messages were lost, and none arrived" in reason for _, reason in words)


def test_a_run_that_did_not_end_cannot_tell(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))
    count = {"name": "messages_sent", "unit": "messages", "bounds": Bounds(above=0)}
    assert verdict(cell_of(directory), **count) == "holds"
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps(manifest | {"state": "interrupted"}))
    assert judgement(cell_of(directory), **count) == ("cannot tell", "the run is not complete (interrupted)")


def test_what_was_still_on_its_way_cannot_be_told(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))
    table = pl.read_parquet(directory / "messages.parquet")
    last = pl.int_range(pl.len()) == table.height - 1
    gone = [
        pl.when(last).then(None).otherwise(pl.col(c)).alias(c)
        for c in ("received_ns", "latency_ns", "settled_ns")
    ]
    outcome = pl.when(last).then(pl.lit("unsettled")).otherwise("outcome").alias("outcome")
    table.with_columns(*gone, outcome).write_parquet(directory / "messages.parquet")
    run = cell_of(directory)
    word, reason = judgement(run, subject="delivered", name="exactly-once")
    assert word == "cannot tell" and "a longer drain would tell" in reason
    assert verdict(run, subject="delivered", name="at-most-once") == "holds"


def test_a_flow_that_is_silent_at_the_end_has_not_recovered_yet(tmp_path: Path) -> None:
    """Shows that a flow that is silent at the end has not recovered: its silence is longer than any before
    the event, but not yet long enough to be an interruption.
    """
    directory = write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=30))
    whole = cell_of(directory)
    usual_ms = next(m.value for m in whole.metrics if m.name == "interruption_before")
    end = json.loads((directory / "manifest.json").read_text())["phases"]["hold"][1]
    gone = pl.col("scheduled_ns") > end - int(1.6e6 * usual_ms)
    none = {c: pl.when(gone).then(None).otherwise(pl.col(c)).alias(c) for c in ("received_ns", "latency_ns")}
    recovery = {"name": "recovery", "unit": "s", "bounds": Bounds(below=99), "after": "link uplink down"}
    assert verdict(whole, **recovery) == "holds"
    word, reason = judgement(altered(directory, **none), **recovery)
    assert word == "cannot tell" and "did not come, nor a later one" in reason


def test_a_deviation_and_a_percentile_of_a_queue_have_no_interval(tmp_path: Path) -> None:
    run = cell_of(write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8)))
    assert verdict(run, name="latency_deviation", unit="ms", bounds=Bounds(below=10**6)) == "cannot tell"
    queue = {"name": "link_queue_p99", "unit": "packets", "bounds": Bounds(below=10**6), "of": {}}
    assert verdict(run, **queue) == "cannot tell"


def test_a_step_that_nobody_recorded_cannot_be_told(tmp_path: Path) -> None:
    """Shows that an expectation about a connection step cannot be decided if one client has no records: the
    step may have happened there.
    """
    directory = write_run(tmp_path / "run", Shape(clients=2, ramp_s=2, hold_s=10))
    whole = cell_of(directory)
    (gone, other) = [(node, session) for node, _, session in whole.run.plan.sessions()][-2:]
    never: dict[str, object] = {"subject": "event", "name": "failed", "mode": "never", "of": {}}
    connected = never | {"name": "connected", "mode": "eventually"}
    assert verdict(whole, **never) == "holds"
    assert verdict(whole, **connected | {"pattern": "session present"}) == "fails"
    file = directory / "sessions.parquet"
    pl.read_parquet(file).filter(pl.col("endpoint") != gone[1].endpoint).write_parquet(file)
    run = cell_of(directory)
    reason = f"no step of a session was recorded of {gone[1].endpoint}"
    for what in (never, never | {"pattern": "x"}, connected | {"pattern": "session present"}):
        assert judgement(run, **what) == ("cannot tell", reason), what
    assert judgement(run, **never | {"of": {"group": gone[0].name}}) == ("cannot tell", reason)
    assert verdict(run, **never | {"of": {"group": other[0].name}}) == "holds"
    assert verdict(run, **connected) == "holds"
    assert verdict(run, **connected | {"mode": "never"}) == "fails"
