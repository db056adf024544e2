"""Computes the floor of a run: the median latencies of a control run, which latency plots show beside the
run's own. A control run is a run of the same file without the load or the impairments that are studied, so
its latency comes from the machine and the programs.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from contract import manifest
from reports.errors import RunDirectoryError
from reports.metrics.messages import held_messages
from reports.rundir import Run, read_run

COLUMNS = ("latency_ns", "round_trip_ns")
QUANTILE = 0.5
Medians = dict[str, dict[str, float]]  # in ms, by column and class


def record(run_dir: Path, control_dir: Path) -> Medians:
    """Writes the control run's medians of the classes that both runs have into the run's manifest, and
    returns them. Raises RunDirectoryError if the runs have no class in common.
    """
    own, control = _medians(read_run(run_dir)), _medians(read_run(control_dir))
    shared = {
        column: {name: ms for name, ms in control[column].items() if name in own[column]}
        for column in COLUMNS
    }
    if not any(shared.values()):
        raise RunDirectoryError(
            f"--control {control_dir}: no message class arrived both in it and in {run_dir}; name a run of "
            "the same file"
        )
    manifest.controlled(run_dir, {"run": str(control_dir), "median_ms": shared})
    return shared


def _medians(run: Run) -> Medians:
    """Returns the medians of the messages of the hold."""
    held, found = held_messages(run), Medians()
    for column in COLUMNS:
        found[column] = {}
        if held is not None:
            rows = held.drop_nulls(column).group_by("class", maintain_order=True)
            middle = rows.agg(pl.col(column).quantile(QUANTILE, "higher") / 1e6)
            found[column] = {str(name): round(float(ms), 6) for name, ms in middle.iter_rows()}
    return found


def floors(run: Run, column: str) -> pl.DataFrame:
    """Returns the recorded median of each class: curve (the class), ms; empty without a control run."""
    known = run.manifest.control.get("median_ms", {})
    rows = list(known.get(column, {}).items())
    return pl.DataFrame(rows, schema={"curve": pl.String, "ms": pl.Float64}, orient="row")
