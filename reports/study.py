"""Defines the study that a page reports: one run, or the runs of a campaign, each with its metrics and
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from contract import regular
from contract.cells import read_cells
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
    """The complete cells of a run or campaign in order, the lines of the cells that failed, and sentences
    about missing data. `single` means one run.
    """

    title: str
    root: Path
    cells: tuple[Cell, ...]
    single: bool
    missing: tuple[str, ...] = ()
    failed: tuple[dict[str, Any], ...] = field(default=())
    description: str = ""
    command: str = ""  # command that repeats the whole study; empty if only its runs have commands
    _made: dict[Callable[..., Any], pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def compared(self) -> pl.DataFrame:
        """The metrics of all cells by condition (`reports.metrics.compare`), computed once."""
        return compare((cell, cell.metrics) for cell in self.cells)

    def added(self, measures: Measures) -> pl.DataFrame:
        """Returns the metrics that `measures` computes for each run, by condition as in `compared`; computed
        once.
        """
        if measures not in self._made:
            self._made[measures] = compare((cell, measures(cell.run)) for cell in self.cells)
        return self._made[measures]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """The scenario and series of each condition, each once, in the order of the cells."""
        return list(dict.fromkeys((cell.scenario, cell.series) for cell in self.cells))

    def once(self, make: Callable[[Study], pl.DataFrame]) -> pl.DataFrame:
        """Returns the result of `make` for this study; computed once."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @cached_property
    def about(self) -> dict[str, Any]:
        """The content of campaign.json; empty for one run."""
        return {} if self.single else _about(self.root / "campaign.json")

    @cached_property
    def hosts(self) -> list[Effect]:
        """The effect of the machines on each figure that could be tested; computed once."""
        return host_effects(self.cells)

    @property
    def series(self) -> list[str]:
        return sorted({c.series for c in self.cells}, key=by_number)

    @property
    def scenarios(self) -> list[str]:
        return sorted({c.scenario for c in self.cells}, key=by_number)

    @cached_property
    def _of_each(self) -> dict[str, set[str]]:
        """The names of the series in each scenario."""
        found: dict[str, set[str]] = {}
        for cell in self.cells:
            found.setdefault(cell.scenario, set()).add(cell.series)
        return found

    def named(self, scenario: str, series: str) -> str:
        """Returns the name of a condition: its series if the study has one scenario, its scenario if each has
        one series, else both.
        """
        if len(self._of_each) == 1:
            return series
        if all(len(several) == 1 for several in self._of_each.values()):
            return scenario
        return f"{scenario}, {series}"

    @property
    def absent(self) -> list[str]:
        """The names of the failed runs and, in a campaign, of the planned runs that are not among the cells:
        not complete, or not readable.
        """
        known = {cell.name for cell in self.cells}
        names = [str(line.get("cell")) for line in self.failed]
        if not self.single:
            names += [str(cell.get("cell")) for cell in self.about.get("cells") or ()]
        return [name for name in dict.fromkeys(names) if name not in known]

    @property
    def repetitions(self) -> int:
        return max((c.repetition for c in self.cells), default=1)


def study_of_run(run_dir: Path, again: bool = False) -> Study:
    """Returns a study of one run, complete or not; with `again`, its metrics are computed from the tables
    instead of read from summary.json. RunDirectoryError if the directory is no run.
    """
    run = read_run(run_dir)
    name = _name(run, run_dir)
    metrics = summarise(run) if again else measured(run)
    cells = _named([_cell(run, metrics, parameters(run), 1, name)])
    return Study(f"{run.lab}: {name}", run_dir, tuple(cells), True, run.missing)


def study_of_campaign(campaign_dir: Path) -> Study:
    """Returns a study of the complete cells of a campaign; RunDirectoryError if there is no readable
    cells.jsonl, or an entry is no regular file or directory.

    Cells that cannot be read become sentences in `missing`; if no complete cell can be read, the error of the
    first one is raised.
    """
    refuse_others(campaign_dir, 0)  # `read_run` checks each run's directory
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
    """Returns a sentence with the parameters and the seed in which a cell's line and its run's manifest
    differ; empty if they agree.
    """
    known = run.manifest.parameters
    found = [name for name, level in levels.items() if name in known and str(known[name]) != str(level)]
    if "seed" in line and run.manifest.seed not in (None, line["seed"]):
        found.append("seed")
    place = f"cell {line.get('cell')}: cells.jsonl"
    return [f"{place} and the run's manifest.json differ in: {', '.join(found)}"] if found else []


def levels_of(line: dict[str, Any]) -> Levels:
    """Returns the factor levels in a line of cells.jsonl, also from the key `factors` of earlier versions;
    empty without either.
    """
    found: Levels = dict(line.get("levels") or line.get("factors") or {})
    return found


def study_of_runs(title: str, root: Path, run_dirs: Sequence[Path]) -> Study:
    """Returns a study of several runs; runs of the same condition become repetitions in the given order.
    RunDirectoryError if one of them is no run.
    """
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
    """Returns the frames of all wanted cells below each other, with the columns of `condition`; None if all
    are None or empty.
    """
    found = []
    for cell in study.cells:
        if wanted is not None and not wanted(cell.run):
            continue
        rows = frame(cell.run)
        if rows is not None and not rows.is_empty():
            found.append(rows.with_columns(condition(cell)))
    return pl.concat(found) if found else None


def condition(cell: Cell) -> list[pl.Expr]:
    """Returns expressions for the columns scenario, series and repetition of the cell."""
    return [
        pl.lit(cell.scenario).alias("scenario"),
        pl.lit(cell.series).alias("series"),
        pl.lit(cell.repetition).alias("repetition"),
    ]


def _cell(run: Run, metrics: list[Metric], levels: Levels, repetition: int, name: str) -> Cell:
    return Cell(run, metrics, roles.scenario(run), levels, "", repetition, name)


def _named(cells: list[Cell]) -> list[Cell]:
    """Returns the cells with the name of their series, which has the factors that vary among them."""
    names = series([(cell.run, cell.levels) for cell in cells])
    return [replace(cell, series=name) for cell, name in zip(cells, names, strict=True)]


def _name(run: Run, run_dir: Path) -> str:
    """Returns the name of a single run: its seed in virtual time, because the seed repeats the run, else the
    name of its directory.
    """
    virtual = run.manifest.virtual
    return f"seed {run.manifest.seed} in virtual time" if virtual else run_dir.name


def _about(path: Path) -> dict[str, Any]:
    """Returns the content of campaign.json; empty if the file is missing, unreadable or no mapping."""
    try:
        found = regular.read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def cell_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the last line of each cell in cells.jsonl, and a sentence for each damaged line;
    RunDirectoryError if the file cannot be read.
    """
    latest: dict[str, dict[str, Any]] = {}
    missing = []
    try:
        for number, _, cell in read_cells(path):
            if cell is not None:
                latest[str(cell["cell"])] = cell  # of a cell that was repeated, only the last line counts
            else:
                missing.append(
                    f"cells.jsonl:{number}: not a finished cell (written while the campaign was killed?)"
                )
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); a campaign directory holds cells.jsonl"
        ) from error
    return list(latest.values()), missing


def all_lines(path: Path) -> list[dict[str, Any]]:
    """All lines of cells.jsonl in order, also of runs that do not count; without damaged ones, which
    `cell_lines` reports. Empty if there is no such file.
    """
    return [cell for _, _, cell in read_cells(path) if cell is not None] if path.exists() else []
