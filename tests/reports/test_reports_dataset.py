"""Tests a campaign's tables as one data set: polars and DuckDB read the same rows, and only the requested
ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import write_campaign
from synthetic_shape import Shape

import vnet
from orchestrator.cli.main import main

Command = Callable[..., int]


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    shapes = [Shape(qos=qos, seed=seed, hold_s=10) for seed in (1, 2) for qos in (0, 1)]
    path = write_campaign(tmp_path / "campaign", shapes)
    lines = [json.loads(line) for line in (path / "cells.jsonl").read_text().splitlines()]
    for line, delay in zip(lines, ("20 ms", "1/3 s", "ünf", None), strict=True):
        line["levels"] = {"qos": line["levels"]["qos"]} | ({} if delay is None else {"delay": delay})
    lines.append({**lines[0], "cell": "failed.r1", "state": "failed"})
    (path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Command:
    def run(*arguments: object) -> int:
        monkeypatch.setattr("sys.argv", ["vnet", "campaign", "dataset", *map(str, arguments)])
        return main()

    return run


def test_polars_and_duckdb_read_the_rows_of_all_runs(campaign: Path, ran: Command) -> None:
    assert ran(campaign) == 0
    messages = campaign / "dataset" / "messages"
    rows = pl.scan_parquet(messages, hive_partitioning=True).collect()
    keys = ["cell", "repetition", "level_qos", "level_delay"]
    loaded = vnet.load(campaign).messages.filter(pl.col("cell") != "failed.r1").collect()
    order = ["cell", "flow", "seq", "receiver"]
    assert set(keys) <= set(rows.columns) and set(loaded.columns) == set(rows.columns)
    assert rows.sort(order).select("latency_ns").equals(loaded.sort(order).select("latency_ns"))
    known = {row[0]: row[1:] for row in loaded.select(keys).unique().rows()}
    assert {row[0]: row[1:] for row in rows.select(keys).unique().rows()} == known
    found = by_duckdb(
        f"SELECT cell, repetition, level_qos, level_delay FROM read_parquet('{messages}/**/*.parquet', "
        "hive_partitioning = true) GROUP BY ALL"
    )
    assert {row[0]: tuple(row[1:]) for row in found} == known


def by_duckdb(query: str) -> list[list[Any]]:
    """Runs the query in a process of its own, because DuckDB's clean-up at the end conflicts with vnet's
    quick exit.
    """
    code = f"import duckdb, json; print(json.dumps(duckdb.sql({query!r}).fetchall()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows


def test_only_the_runs_asked_for_are_read(campaign: Path, ran: Command) -> None:
    assert ran(campaign) == 0
    for file in (campaign / "dataset" / "packets").rglob("*.parquet"):
        if "level_qos=1" in str(file):
            file.unlink()
            file.write_bytes(b"not Parquet")
    rows = pl.scan_parquet(campaign / "dataset" / "packets" / "**" / "*.parquet", hive_partitioning=True)
    assert rows.filter(pl.col("level_qos") == 0).select("point").unique().collect().rows() == [("lan",)]


def test_written_again_it_has_what_is_complete_now(campaign: Path, ran: Command, tmp_path: Path) -> None:
    out = tmp_path / "data"
    assert ran(campaign, "--out", out) == 0
    (out / "mine.txt").touch()
    lines = (campaign / "cells.jsonl").read_text().splitlines(keepends=True)
    (campaign / "cells.jsonl").write_text("".join(lines[:1]))
    assert ran(campaign, "--out", out, "--copy") == 0
    (file,) = (out / "nodes").rglob("*.parquet")
    assert not file.is_symlink() and (out / "mine.txt").exists()
    assert len(list((out / "nodes").iterdir())) == 1


def test_refused(campaign: Path, ran: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path) == 3 and "a campaign directory holds cells.jsonl" in capsys.readouterr().err
    assert ran(campaign, "--out", campaign) == 3
    assert "exists and is not a data set; name another place with --out" in capsys.readouterr().err
    assert ran(campaign, "--out", campaign / "cells.jsonl") == 3
    assert ran(campaign, "--out", tmp_path / "data") == 0
    (tmp_path / "outside").touch()
    (tmp_path / "data" / "_vnet.json").write_text('{"files": ["../outside"]}')
    assert ran(campaign, "--out", tmp_path / "data") == 3 and (tmp_path / "outside").exists()
    (campaign / "cells.jsonl").write_text("")
    assert ran(campaign, "--out", tmp_path / "none") == 3 and not (tmp_path / "none").exists()
    assert "no run is complete and reduced" in capsys.readouterr().err
