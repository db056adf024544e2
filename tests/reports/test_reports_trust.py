"""Tests the page's first lines for a run that is not fully trusted, and the reasons: machine, clock, CPU."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from pages import check_page
from synthetic import write_run
from synthetic_shape import Shape

from capture import trust
from contract import manifest, rundir, seal
from reports.headline import headline
from reports.report import report
from reports.sections.section import words


def test_words_between_backticks_are_code_and_everything_is_escaped() -> None:
    said = words("write `memory: <8 GiB>` at *the* host `lab1")
    assert said == "write <code>memory: &lt;8 GiB&gt;</code> at *the* host `lab1"


def judged(run: Path) -> Path:
    """Returns the run with the findings of its reduction."""
    plan = rundir.read_plan(run)
    manifest.reduced(run, trust.judge(run, plan, manifest.load(run)))
    seal.seal(run)
    return run


def test_a_busy_machine_makes_a_run_suspect(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    path = run / "host.parquet"
    pl.read_parquet(path).with_columns(busy_share=pl.lit(0.97), steal_share=pl.lit(0.05)).write_parquet(path)
    text = check_page(report(judged(run)))
    assert "Suspect." in text and "was over 90% busy in" in text and "stolen by its hypervisor" in text


def test_in_virtual_time_no_machine_is_busy_but_the_modelled_core_may_be(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    manifest = json.loads((run / "manifest.json").read_text())
    kernel = {**manifest["kernel"], "syscall_ns": 5000}
    (run / "manifest.json").write_text(json.dumps({**manifest, "time": "virtual", "kernel": kernel}))
    path = run / "host.parquet"
    pl.read_parquet(path).with_columns(busy_share=pl.lit(0.97), steal_share=pl.lit(0.05)).write_parquet(path)
    text = check_page(report(judged(run)))
    assert "the modelled core was 97% busy in the scenario" in text and "5 µs of one core" in text
    assert "Suspect." not in text and "stolen by its hypervisor" not in text
    assert "machine busy, %" not in {row[0] for row in headline(run)}


def test_a_latency_below_zero_makes_a_run_suspect(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    path = run / "messages.parquet"
    first = pl.int_range(pl.len()) == 0
    late = pl.when(first).then(-5).otherwise(pl.col("latency_ns"))
    pl.read_parquet(path).with_columns(latency_ns=late).write_parquet(path)
    assert "1 message arrived before being scheduled" in check_page(report(judged(run)))


def test_cpu_counted_in_ticks_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    path = run / "nodes.parquet"
    ticked = pl.col("cpu_ns") // 10_000_000 * 10_000_000
    pl.read_parquet(path).with_columns(cpu_ns=ticked + 1).write_parquet(path)
    assert "ticks of 10 ms" not in check_page(report(judged(run)))
    assert "broker CPU, % of a core" in {row[0] for row in headline(run)}
    pl.read_parquet(path).with_columns(cpu_ns=ticked).write_parquet(path)
    page = check_page(report(judged(run)))
    assert "counts CPU in ticks of 10 ms" in page
    # each of the 7 is in a figure and in the list
    assert page.count("needs a kernel that counts CPU finer than in ticks of 10 ms") == 2 * 7
    assert "broker CPU, % of a core (rough: 10 ms ticks)" in {row[0] for row in headline(run)}
