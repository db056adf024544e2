"""Tests that a campaign's report holds one run's tables at a time, however many runs there are."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from synthetic import write_campaign
from synthetic_shape import Shape

from contract import rundir, seal
from contract.proof import Proven
from reports.cell import Cell
from reports.figures.latency import LATENCIES
from reports.figures.proof import proof_data
from reports.metrics.messages import held_messages
from reports.metrics.metric import Of, count, flat
from reports.metrics.pooled import Pooled
from reports.proofs import failures_first, proven
from reports.shelf import Shelf
from reports.study import Study, study_of_campaign


class Counting:
    """A run directory that records which files are read, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[Path] = []
        self._before = pl.read_parquet
        monkeypatch.setattr(pl, "read_parquet", self._read)

    def _read(self, file: Path) -> pl.DataFrame:
        self.read.append(file)
        return self._before(file)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    shapes = [Shape(qos=qos, seed=seed, hold_s=20) for seed in (1, 2) for qos in (0, 1)]
    path = write_campaign(tmp_path / "campaign", shapes)
    for run in (path / "runs").iterdir():
        (run / "summary.json").write_text("[]")
        seal.seal(run)
    return path


def test_tables_are_read_when_they_are_asked_for(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)
    study = study_of_campaign(campaign)
    assert len(study.cells) == 4 and not counting.read
    assert study.cells[1].run.table("nodes") is not None
    assert [file.name for file in counting.read] == ["nodes.parquet"]


def test_what_was_changed_since_it_was_sealed_is_read_at_once_and_said(campaign: Path) -> None:
    run = campaign / "runs" / sorted(path.name for path in (campaign / "runs").iterdir())[0]
    whole = (run / "nodes.parquet").read_bytes()
    (run / "nodes.parquet").write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    study = study_of_campaign(campaign)
    assert any("nodes.parquet cannot be read" in text for text in study.missing)
    assert [cell.run.table("nodes") is None for cell in study.cells].count(True) == 1


def test_one_run_is_held_at_a_time(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ample = LATENCIES(study_of_campaign(campaign))
    held: list[int] = []
    get = Shelf.get

    def watched(shelf: Shelf, *arguments: object) -> object:
        found = get(shelf, *arguments)  # type: ignore[arg-type]
        held.append(len(shelf._held))
        return found

    monkeypatch.setattr(Shelf.__init__, "__defaults__", (1,))
    monkeypatch.setattr(Shelf, "get", watched)
    counting = Counting(monkeypatch)
    scanty = LATENCIES(study_of_campaign(campaign))
    assert scanty.equals(ample) and set(held) == {1}
    # first the counts are read, then the times
    assert [file.name for file in counting.read] == ["messages.parquet"] * 8


def test_what_a_run_more_costs(campaign: Path) -> None:
    """Shows that each further run of a report costs at most 0.7 MB, so that a thousand runs fit in 1 GB."""
    lines = (campaign / "cells.jsonl").read_text().splitlines()
    figures = [count("node_cpu", Of(group=f"group {n}"), n, "%", 20, "mean") for n in range(300)]
    for run in (campaign / "runs").iterdir():
        rows = json.loads((run / "proof.json").read_text())
        (run / "proof.json").write_text(
            json.dumps([{**row, "link": str(n)} for n in range(200) for row in rows])
        )
        manifest = json.loads((run / "manifest.json").read_text())
        far = {"underlay": [{"from": f"lab{n}", "rate": float(n)} for n in range(1000)]}
        (run / "manifest.json").write_text(json.dumps(manifest | far))
        rundir.write_summary(run, map(flat, figures))
        seal.seal(run)
    held = []
    for times in (1, 11):
        again = [json.loads(line) for line in lines for _ in range(times)]
        named = [{**line, "cell": str(n), "repetition": n + 1} for n, line in enumerate(again)]
        (campaign / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in named))
        tracemalloc.start()
        study = study_of_campaign(campaign)
        assert len(study.cells) == times * len(lines) and not study.compared.is_empty()
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert (held[1] - held[0]) / (10 * len(lines)) < 150_000


def test_proofs_of_many_runs_are_taken_together(campaign: Path) -> None:
    study = study_of_campaign(campaign)
    cell = study.cells[0]
    asked = {"link": "wan", "direction": "forward", "quantity": "delay", "requested": 2e7, "expected": 2e7}

    def proof(number: int) -> list[Proven]:
        verdict = "fails" if number % 50 == 7 else "holds"
        return [Proven.of({**asked, "measured": 2e7 + number, "unit": "ns", "n": 5, "verdict": verdict})]

    def run(number: int) -> Cell:
        made = replace(cell.run, read_proof=lambda: proof(number))
        return replace(cell, run=made, name=f"{number:04}")

    many = replace(study, cells=tuple(map(run, range(120))))
    (row,) = proven(many).to_dicts()
    assert (row["runs"], row["fails"], row["holds"], row["n"]) == (120, 3, 117, 600)
    assert (row["verdict"], row["cell"], row["least"]) == ("fails", "0007", 20)
    assert row["most"] == pytest.approx(20.000119)
    drawn = proof_data(many)
    assert drawn["verdict"].to_list() == ["fails"] * 3 + ["holds"] * 39
    whole = pl.concat(failures_first(many))
    assert whole.height == 120 and whole["verdict"].to_list() == ["fails"] * 3 + ["holds"] * 117
    assert whole["cell"].is_unique().all()


def test_quantiles_of_all_repetitions_are_those_of_their_messages_together(campaign: Path) -> None:
    study = study_of_campaign(campaign)
    drawn = LATENCIES(study)
    for (scenario, curve), rows in drawn.group_by("scenario", "curve"):
        values = np.sort(together(study, str(scenario), str(curve)))
        ms = rows.get_column("ms").to_numpy()
        by_then = np.searchsorted(values, ms, side="right") / len(values)
        before = np.searchsorted(values, ms, side="left") / len(values)
        assert (rows.get_column("share").to_numpy() <= 100 * by_then + 1e-9).all()
        assert (rows.get_column("share").to_numpy() > 100 * before).all()
        assert np.allclose(rows.get_column("beyond").to_numpy(), 100 - 100 * before)
        assert ms[-1] == values[-1] and set(ms) <= set(values)


def together(study: Study, scenario: str, series: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    frames = [held_messages(c.run) for c in study.cells if (c.scenario, c.series) == (scenario, series)]
    assert len(frames) == 2
    columns = [frame.get_column("latency_ns").drop_nulls() for frame in frames if frame is not None]
    return pl.concat(columns).to_numpy() / 1e6


def test_what_is_pooled_is_exact_and_beyond_its_room_rounded() -> None:
    rng = np.random.default_rng(1)
    times = [pl.Series(rng.lognormal(14, 1, 3000).astype(int)) for _ in range(20)]
    exact, scanty = Pooled(), Pooled(most=10_000)
    for pooled in (exact, scanty):
        for one in times:
            pooled.add(0, one)
            pooled.add(1, one.head(1))
    values = np.sort(np.concatenate([one.to_numpy() for one in times]))
    counts = exact.of(0)
    assert np.repeat(counts["time_ns"].to_numpy(), counts["count"].to_numpy()).tolist() == values.tolist()
    assert scanty.of(0)["count"].sum() == len(values) and scanty.of(1)["count"].sum() == 20
    rounded = scanty.of(0)
    again = np.repeat(rounded["time_ns"].to_numpy(), rounded["count"].to_numpy())
    assert rounded.height < 20_000 and (abs(again - values) <= 0.0005 * values + 1).all()


def test_a_shelf_keeps_what_was_used_last() -> None:
    shelf, read = Shelf(room_bytes=2), list[str]()

    def look(path: Path) -> str:
        read.append(path.name)
        return path.name

    def get(name: str, size: int = 1) -> str:
        return shelf.get(Path(name), look, lambda _: size)

    for name in "abacaba":
        assert get(name) == name
    assert read == list("abcb") and shelf.held_bytes == 2
    assert get("large", 50) == "large" and shelf.held_bytes == 50
    get("large", 50)
    assert read == ["a", "b", "c", "b", "large"]
