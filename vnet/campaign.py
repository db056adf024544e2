"""Reads the runs of a campaign as one set of frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from contract import rundir
from contract.cells import NAME, read_cells

from . import files
from .errors import LoadError
from .run import Run


@dataclass(frozen=True)
class Campaign:
    """A campaign directory, recognised by its file cells.jsonl. Members raise LoadError if a file is missing
    or damaged.
    """

    path: Path

    @cached_property
    def _cells(self) -> list[dict[str, Any]]:
        """The last line of each cell in cells.jsonl; a cell that failed and was run again has several lines.
        LoadError for a damaged line.
        """
        file, found = self.path / NAME, {}
        for number, line, cell in files.read_by(lambda _: list(read_cells(file)), file):
            if cell is None:
                rule = "is no cell's line; remove it, `vnet campaign run DIR` runs that cell again"
                raise LoadError(f"{file}:{number}: {line[:60]!r}: {rule}")
            found[cell["cell"]] = cell
        return list(found.values())

    @cached_property
    def cells(self) -> pl.DataFrame:
        """One row for each cell: cell, repetition, seed, state, error, run_dir and its levels as
        `level_FACTOR`; complete or not.
        """
        kept = ("cell", "repetition", "seed", "state", "error", "run_dir")
        return files.rows([{key: cell.get(key) for key in kept} | _levels(cell) for cell in self._cells])

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The run of each cell by the cell's name; cells without a run directory are left out."""
        there = {cell["cell"]: self.path / cell["run_dir"] for cell in self._cells if cell.get("run_dir")}
        return {name: Run(path) for name, path in there.items() if path.is_dir()}

    @cached_property
    def manifests(self) -> dict[str, dict[str, Any]]:
        """The run manifest of each cell by the cell's name; cells without a run directory are left out.
        LoadError if a run has no readable manifest.
        """
        return {name: run.manifest for name, run in self.runs.items()}

    @cached_property
    def summary(self) -> pl.DataFrame:
        """The figures of the campaign's summary.json, computed over all repetitions."""
        return files.rows(files.read_by(rundir.read_summary, self.path / rundir.SUMMARY))

    def table(self, name: str) -> pl.LazyFrame:
        """Joins the table `name` of all runs that have it, with the columns `cell`, `repetition`,
        `level_FACTOR`.

        The frame is lazy; a column that a run lacks is null. LoadError if no run has the table.
        """
        found = []
        for cell in self._cells:
            run = self.runs.get(cell["cell"])
            if run is None or name not in run.tables:
                continue
            columns = {"cell": cell["cell"], "repetition": cell.get("repetition")} | _levels(cell)
            own = [pl.lit(value).alias(column) for column, value in columns.items()]
            found.append(run.table(name).with_columns(own).select(*columns, pl.exclude(*columns)))
        if not found:
            there = sorted({table for run in self.runs.values() for table in run.tables})
            text = f"no run has a table {name!r} (there are: {', '.join(there) or 'none'})"
            raise LoadError(f"{self.path}: {text}; {files.NOT_REDUCED}")
        return pl.concat(found, how="diagonal_relaxed")

    @property
    def messages(self) -> pl.LazyFrame:
        """The table of messages of all runs, lazy."""
        return self.table("messages")

    @property
    def nodes(self) -> pl.LazyFrame:
        """The table of node samples of all runs, lazy."""
        return self.table("nodes")

    @property
    def links(self) -> pl.LazyFrame:
        """The table of link samples of all runs, lazy."""
        return self.table("links")


def _levels(cell: dict[str, Any]) -> dict[str, Any]:
    levels: dict[str, Any] = cell.get("levels") or cell.get("factors") or {}
    return {f"level_{factor}": level for factor, level in levels.items()}
