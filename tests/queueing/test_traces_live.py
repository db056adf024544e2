"""Traces in labs of the fake driver, through the command line: played, on the page, and nobody else's."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from virtual_place import Place

from capture.reduce import reduce_run
from reports.figures import traces
from reports.rundir import read_run

LAB = """\
name: played
segments: {a: {subnet: 10.1.0.0/24}, b: {subnet: 10.1.0.0/24}}
nodes: {one: {segment: a}, two: {segment: b}}
links:
  wan: {between: [a, b], forward: {trace: {file: walk.csv, repeat: true}}, reverse: {delay: 2 ms}}
  air: {between: [one, a], duplex: half, both: {trace: walk.csv}}
run: {ramp: 0 s, hold: 6 s}
"""
WALK = "time_s,rate_mbps,delay_ms\n0,4,10\n1,0,20\n1.5,2,20\n2,3,10\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("played"))
    (made.cwd / "played.yaml").write_text(LAB)
    (made.cwd / "walk.csv").write_text(WALK)
    return made


def test_a_run_has_every_change_and_says_when_traces_began(place: Place) -> None:
    done = place.vnet("run", "played.yaml", "--kernel", "fake", "--out", "out", "--json", "--raw")
    assert done.returncode == 0, done.stderr
    run_dir = place.cwd / json.loads(done.stdout)["run_dir"]
    reduce_run(run_dir)
    played = pl.read_parquet(run_dir / "impairments.parquet")
    t0 = json.loads((run_dir / "manifest.json").read_text())["t0_ns"]
    due = played.with_columns(((pl.col("planned_ns") - t0) // 10**6).alias("ms"))
    wan, air = due.filter(link="wan"), due.filter(link="air")
    assert wan["ms"].to_list()[:7] == [0, 1000, 1500, 2000, 3000, 3500, 4000]
    assert wan["rate_bps"].to_list()[:4] == [4_000_000, 0, 2_000_000, 4_000_000]
    assert air["direction"].unique().to_list() == ["both"], "half duplex has one transmitter"
    assert air["ms"].to_list() == [0, 1000, 1500, 2000], "its last state stays"
    events = pl.read_parquet(run_dir / "events.parquet").filter(action="trace")
    assert sorted(events["label"].to_list()) == ["trace walk.csv: air both", "trace walk.csv: wan forward"]
    assert "asked_bps" in pl.read_parquet_schema(run_dir / "links.parquet")
    of_one: Any = SimpleNamespace(cells=[SimpleNamespace(run=read_run(run_dir))])
    delays = traces.delays(of_one)
    assert delays["curve"].unique().sort().to_list() == ["air both", "wan forward"]
    assert delays.filter(curve="air both").select("time", "value").rows() == [
        (0, 10), (1, 20), (1.5, 20), (2, 10)
    ]  # fmt: skip
    assert traces.rates(of_one)["what"].unique().sort().to_list() == ["asked", "carried"]


def test_nobody_else_changes_such_a_link(place: Place) -> None:
    done = place.vnet("up", "played.yaml", "--kernel", "fake")
    assert done.returncode == 0, done.stderr
    try:
        refused = place.vnet("link", "played", "wan", "--forward", "--delay", "3 ms")
        assert refused.returncode != 0 and "links.wan.forward: is played from a trace" in refused.stderr
        allowed = place.vnet("link", "played", "wan", "--reverse", "--delay", "3 ms")
        assert allowed.returncode == 0, allowed.stderr
    finally:
        assert place.vnet("down", "played").returncode == 0
    assert not list(Path(place.cwd / "state").iterdir())
