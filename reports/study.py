"""What one page is about: a run, or the runs of a campaign, each with its metrics and its condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from reports import roles
from reports.cell import Cell
from reports.damage import told
from reports.metrics.compare import compare
from reports.metrics.hosts import Effect, host_effects
from reports.metrics.metric import Metric
from reports.metrics.summary import measured, summarise
from reports.rundir import Run, RunDirectoryError, read_run, refuse_others
from reports.series import Levels, by_number, parameters, series
from reports.shelf import Shelf

Measures = Callable[[Run], list[Metric]]


@dataclass(frozen=True)
class Study:
    """The cells that count, in order, and sentences about what is not there."""

    title: str
    root: Path
    cells: tuple[Cell, ...]
    single: bool
    missing: tuple[str, ...] = ()
    failed: tuple[dict[str, Any], ...] = field(default=())
    description: str = ""
    command: str = ""  # that makes the whole study again; empty: the runs' own
    _made: dict[Callable[..., Any], pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def compared(self) -> pl.DataFrame:
        """The cells' metrics side by side (`reports.metrics.compare`), computed once."""
        return compare((cell, cell.metrics) for cell in self.cells)

    def added(self, measures: Measures) -> pl.DataFrame:
        """As `compared`, of what `measures` finds in each run beyond its metrics; measured once."""
        if measures not in self._made:
            self._made[measures] = compare((cell, measures(cell.run)) for cell in self.cells)
        return self._made[measures]

    def once(self, make: Callable[[Study], pl.DataFrame]) -> pl.DataFrame:
        """What `make` gives of this study, made once."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @cached_property
    def hosts(self) -> list[Effect]:
        """What the machines that the cells ran on add to the figures; computed once."""
        return host_effects(self.cells)

    @property
    def series(self) -> list[str]:
        return sorted({c.series for c in self.cells}, key=by_number)

    @property
    def scenarios(self) -> list[str]:
        return sorted({c.scenario for c in self.cells}, key=by_number)

    @property
    def repetitions(self) -> int:
        return max((c.repetition for c in self.cells), default=1)


def study_of_run(run_dir: Path, again: bool = False) -> Study:
    """A study of one run; again: from its tables, whatever its summary.json says."""
    run = read_run(run_dir)
    name = _name(run, run_dir)
    metrics = summarise(run) if again else measured(run)
    cells = _named([_cell(run, metrics, parameters(run), 1, name)])
    return Study(f"{run.lab}: {name}", run_dir, tuple(cells), True, run.missing)


def study_of_campaign(campaign_dir: Path) -> Study:
    """The finished cells of a campaign; RunDirectoryError where there is no readable cells.jsonl.

    Also where none of the finished cells can be read, as of another version: the first cell's error.
    """
    refuse_others(campaign_dir, 0)  # each run is looked through when it is read
    refuse_others(campaign_dir / "report")
    lines, missing = cell_lines(campaign_dir / "cells.jsonl")
    cells, failed, unread, shelf = [], [], list[RunDirectoryError](), Shelf()
    for line in lines:
        if line.get("state") != "complete":
            failed.append(line)
            continue
        try:
            place = campaign_dir / str(line["run_dir"])
            with told(place):
                run = read_run(place, shelf)
                metrics = measured(run)
                levels = levels_of(line)
                repetition = int(line.get("repetition") or 1)
                missing += _differing(line, run, levels)
        except RunDirectoryError as error:
            unread.append(error)
            missing.append(str(error))
            continue
        missing += [f"cell {line.get('cell')}: {text}" for text in run.missing]
        cell = _cell(run, metrics, levels, repetition, str(line.get("cell", "")))
        cells.append(replace(cell, machine=str(line.get("machine") or "")))
    if unread and not cells:
        raise unread[0]
    cells = _named(cells)
    cells.sort(key=lambda c: (c.scenario, c.series, c.repetition))
    about = _about(campaign_dir / "campaign.json")
    command = str(about.get("command") or "")
    title, description = str(about.get("name") or campaign_dir.name), str(about.get("description") or "")
    return Study(
        title,
        campaign_dir,
        tuple(cells),
        False,
        tuple(missing),
        tuple(failed),
        description,
        command,
    )


def _differing(line: dict[str, Any], run: Run, levels: Levels) -> list[str]:
    """What a cell's line says of its run and the run itself does not."""
    known = run.manifest.get("parameters") or {}
    found = [name for name, level in levels.items() if name in known and str(known[name]) != str(level)]
    if "seed" in line and run.manifest.get("seed") not in (None, line["seed"]):
        found.append("seed")
    place = f"cell {line.get('cell')}: cells.jsonl"
    return (
        [f"{place} and the run's manifest.json say different things of: {', '.join(found)}"] if found else []
    )


def levels_of(line: dict[str, Any]) -> Levels:
    """Of a line of cells.jsonl; factors: campaigns of earlier versions."""
    found: Levels = dict(line.get("levels") or line.get("factors") or {})
    return found


def study_of_runs(title: str, root: Path, run_dirs: Sequence[Path]) -> Study:
    """A set of runs side by side; repetitions are counted in the order given."""
    shelf = Shelf()
    runs = [read_run(path, shelf) for path in run_dirs]
    missing = [
        f"{path.name}: {text}" for path, run in zip(run_dirs, runs, strict=True) for text in run.missing
    ]
    cells = _named(
        [
            _cell(run, measured(run), parameters(run), 1, path.name)
            for path, run in zip(run_dirs, runs, strict=True)
        ]
    )
    seen: dict[tuple[str, str], int] = {}
    for place, cell in enumerate(cells):
        seen[cell.scenario, cell.series] = seen.get((cell.scenario, cell.series), 0) + 1
        cells[place] = replace(cell, repetition=seen[cell.scenario, cell.series])
    return Study(title, root, tuple(cells), False, tuple(missing))


def per_cell(
    study: Study, frame: Callable[[Run], pl.DataFrame | None], wanted: Callable[[Run], bool] | None = None
) -> pl.DataFrame | None:
    """The frames of all cells (that are wanted), with the columns of `condition`; None if there are none."""
    found = []
    for cell in study.cells:
        if wanted is not None and not wanted(cell.run):
            continue
        rows = frame(cell.run)
        if rows is not None and not rows.is_empty():
            found.append(rows.with_columns(condition(cell)))
    return pl.concat(found) if found else None


def condition(cell: Cell) -> list[pl.Expr]:
    """The columns that say to which cell a row belongs."""
    return [
        pl.lit(cell.scenario).alias("scenario"),
        pl.lit(cell.series).alias("series"),
        pl.lit(cell.repetition).alias("repetition"),
    ]


def _cell(run: Run, metrics: list[Metric], levels: Levels, repetition: int, name: str) -> Cell:
    return Cell(run, metrics, roles.scenario(run), levels, "", repetition, name)


def _named(cells: list[Cell]) -> list[Cell]:
    """The cells with their series, which depends on what varies among all of them."""
    names = series([(cell.run, cell.levels) for cell in cells])
    return [replace(cell, series=name) for cell, name in zip(cells, names, strict=True)]


def _name(run: Run, run_dir: Path) -> str:
    """What a single run is called: when it was made, or, where the same run can be made again, its seed."""
    virtual = run.manifest.get("time") == "virtual"
    return f"seed {run.manifest.get('seed')} in virtual time" if virtual else run_dir.name


def _about(path: Path) -> dict[str, Any]:
    """campaign.json, which names the campaign; empty where it is not there or not readable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def cell_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The last line of every cell of a campaign's cells.jsonl, and sentences about lines that are none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); a campaign directory holds cells.jsonl"
        ) from error
    latest: dict[str, dict[str, Any]] = {}
    missing = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            cell = json.loads(line)
            latest[str(cell["cell"])] = cell  # a cell that was run again counts once, as it ended last
        except (ValueError, KeyError, TypeError):
            missing.append(
                f"cells.jsonl:{number}: not a finished cell (written while the campaign was killed?)"
            )
    return list(latest.values()), missing
