"""Tests `vnet report --control`: latency plots show the medians of a control run as a floor."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from command_line import TOPOLOGIES, CommandLine

from contract import seal
from reports.control import floors, record
from reports.errors import RunDirectoryError
from reports.rundir import read_run

PAIR = str(TOPOLOGIES / "pair.yaml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a finished run with figures of the fake kernel."""
    place = tmp_path_factory.mktemp("finished")
    done = CommandLine(place, place / "s")("run", PAIR, "--kernel", "fake", "-p", "hold=1s", "--json")
    return place / str(json.loads(done.stdout)["run_dir"])


def halved(run: Path, place: Path, name: str = "") -> Path:
    """Returns a copy of the run in which messages take half as long; with `name`, of another class."""
    made = Path(shutil.copytree(run, place / "control"))
    file = made / "messages.parquet"
    table = pl.read_parquet(file).with_columns(pl.col("latency_ns", "round_trip_ns") // 2)
    (table.with_columns(pl.lit(name).alias("class")) if name else table).write_parquet(file)
    return made


def test_the_floor_of_a_control_run_is_drawn_and_sealed(
    vnet: CommandLine, finished: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    assert floors(read_run(run), "latency_ns").is_empty()
    control = halved(finished, tmp_path)
    vnet("report", str(run), "--control", str(control))
    known = {
        column: dict(floors(read_run(run), column).iter_rows()) for column in ("latency_ns", "round_trip_ns")
    }
    held = pl.read_parquet(run / "messages.parquet")
    assert any(known.values())
    for column, medians in known.items():
        for name, ms in medians.items():
            times = held.filter(pl.col("class") == name)[column].drop_nulls()
            assert times.min() / 2e6 <= ms <= times.max() / 2e6  # type: ignore[operator]  # integers
    figures = [json.loads(file.read_text()) for file in (run / "report" / "figures").glob("*.vl.json")]
    assert sum("control, p50" in json.dumps(figure) for figure in figures) >= 2
    assert seal.altered(run) == () and seal.altered_records(run) == ()


def test_a_control_run_of_other_messages_is_refused(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    with pytest.raises(RunDirectoryError, match=r"no message class arrived both in it and in .*same file"):
        record(run, halved(finished, tmp_path, "another"))
    assert "control" not in json.loads((run / "manifest.json").read_text())
