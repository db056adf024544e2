"""What one page is about: a run, or the runs of a campaign, each with its metrics and its condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from capture.trials import planned
from reports import roles
from reports.metrics.metric import Metric
from reports.metrics.summary import summarise
from reports.rundir import Run, RunDirectoryError, read_run


@dataclass(frozen=True)
class Cell:
    """One run in its condition. `series` is told apart by colour: the QoS, and further factors."""

    run: Run
    metrics: list[Metric]
    scenario: str
    shape: str  # many-to-one, many-to-many, other
    qos: int | None
    series: str
    repetition: int = 1
    name: str = ""


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

    @property
    def series(self) -> list[str]:
        return sorted({c.series for c in self.cells})

    @property
    def scenarios(self) -> list[str]:
        return sorted({c.scenario for c in self.cells})

    @property
    def repetitions(self) -> int:
        return max((c.repetition for c in self.cells), default=1)


def study_of_run(run_dir: Path) -> Study:
    """A study of one run."""
    run = read_run(run_dir)
    name = _name(run, run_dir)
    cell = _cell(run, {}, 1, name)
    return Study(f"{run.lab}: {name}", run_dir, (cell,), True, run.missing)


def study_of_campaign(campaign_dir: Path) -> Study:
    """The finished cells of a campaign; RunDirectoryError where there is no readable cells.jsonl."""
    lines, missing = _cell_lines(campaign_dir / "cells.jsonl")
    cells, failed = [], []
    varying = _varying([line.get("factors") or {} for line in lines])
    for line in lines:
        if line.get("state") != "complete":
            failed.append(line)
            continue
        try:
            run = read_run(campaign_dir / str(line["run_dir"]))
        except RunDirectoryError as error:
            missing.append(str(error))
            continue
        missing += [f"cell {line.get('cell')}: {text}" for text in run.missing]
        factors = {k: v for k, v in (line.get("factors") or {}).items() if k in varying}
        cells.append(_cell(run, factors, int(line.get("repetition") or 1), str(line.get("cell", ""))))
    cells.sort(key=lambda c: (c.scenario, c.series, c.repetition))
    about = _about(campaign_dir / "campaign.json")
    command = str(about.get("command") or "")
    title, description = str(about.get("name") or campaign_dir.name), str(about.get("description") or "")
    return Study(
        title, campaign_dir, tuple(cells), False, tuple(missing), tuple(failed), description, command
    )


def study_of_runs(title: str, root: Path, run_dirs: Sequence[Path]) -> Study:
    """A set of runs side by side; repetitions are counted in the order given."""
    seen: dict[tuple[str, str], int] = {}
    cells, missing = [], []
    for path in run_dirs:
        run = read_run(path)
        cell = _cell(run, {}, 1, path.name)
        seen[cell.scenario, cell.series] = seen.get((cell.scenario, cell.series), 0) + 1
        cells.append(_cell(run, {}, seen[cell.scenario, cell.series], path.name))
        missing += [f"{path.name}: {text}" for text in run.missing]
    return Study(title, root, tuple(cells), False, tuple(missing))


def per_cell(
    study: Study, frame: Callable[[Run], pl.DataFrame | None], shape: str | None = None
) -> pl.DataFrame | None:
    """The frames of all cells (of one shape), with the columns of `condition`; None if there are none."""
    found = []
    for cell in study.cells:
        if shape not in (None, cell.shape):
            continue
        rows = frame(cell.run)
        if rows is not None and not rows.is_empty():
            found.append(rows.with_columns(condition(cell)))
    return pl.concat(found) if found else None


def condition(cell: Cell) -> list[pl.Expr]:
    """The columns that say to which cell a row belongs."""
    return [
        pl.lit(cell.scenario).alias("scenario"),
        pl.lit(cell.shape).alias("shape"),
        pl.lit(cell.series).alias("series"),
        pl.lit(cell.repetition).alias("repetition"),
    ]


def _cell(run: Run, factors: dict[str, Any], repetition: int, name: str) -> Cell:
    qos = roles.qos(run)
    everything = "measured" if planned(run.plan) else "all messages"
    label = everything if qos is None else f"QoS {qos}"
    said = ("qos", "scenario", "topology", *(["frame_size"] if planned(run.plan) else []))
    others = [f"{k} {v}" for k, v in factors.items() if k not in said]
    labels = [] if planned(run.plan) and others else [label]
    return Cell(
        run=run,
        metrics=summarise(run),
        scenario=roles.scenario(run),
        shape=roles.shape(run),
        qos=qos,
        series=", ".join([*labels, *others]),
        repetition=repetition,
        name=name,
    )


def _name(run: Run, run_dir: Path) -> str:
    """What a single run is called: when it was made, or, where the same run can be made again, its seed."""
    virtual = run.manifest.get("time") == "virtual"
    return f"seed {run.manifest.get('seed')} in virtual time" if virtual else run_dir.name


def _varying(factors: list[dict[str, Any]]) -> set[str]:
    """Factors with more than one level among the cells: the others need not be said on every curve."""
    levels: dict[str, set[str]] = {}
    for one in factors:
        for name, level in one.items():
            levels.setdefault(name, set()).add(json.dumps(level))
    return {name for name, seen in levels.items() if len(seen) > 1}


def _about(path: Path) -> dict[str, Any]:
    """campaign.json, which names the campaign; empty where it is not there or not readable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _cell_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
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
