"""Reads a side of a comparison from a path: a run, a campaign, a directory with runs in it, or a baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from contract import manifest
from reports.compare.baseline import read_baseline
from reports.compare.errors import CompareError
from reports.compare.side import Side, side_of
from reports.study import study_of_campaign, study_of_run, study_of_runs


def read_side(letter: str, path: Path) -> Side:
    """Returns the side that a path names: a run, a campaign, a directory with runs in it, or a baseline file.

    CompareError if the path is none of them or has no complete run, RunDirectoryError if a run or campaign
    cannot be read.
    """
    if path.is_file():
        return read_baseline(letter, path)
    if not path.is_dir():
        raise CompareError(f"{path}: is not there; name a run, a campaign or a file of `vnet baseline save`")
    if (path / "cells.jsonl").exists():
        return side_of(letter, str(path), study_of_campaign(path))
    if any((path / name).exists() for name in ("plan.json", "manifest.json")):
        return side_of(letter, str(path), study_of_run(path))
    return _several(letter, path)


def _several(letter: str, path: Path) -> Side:
    """Returns the side of a directory with runs in it, such as results/LAB: its complete runs, with a note if
    others are left out.

    CompareError if it has no run or no complete one.
    """
    runs = sorted(file.parent for file in path.glob(f"*/{manifest.NAME}"))
    if not runs:
        raise CompareError(f"{path}: holds no run and no campaign; a run has a {manifest.NAME}")
    complete = [run for run in runs if manifest.load(run).state == manifest.COMPLETE]
    if not complete:
        raise CompareError(f"{path}: none of its {len(runs)} runs is complete; name another directory")
    side = side_of(letter, str(path), study_of_runs(path.name, path, complete))
    left = len(runs) - len(complete)
    return (
        replace(side, notes=(*side.notes, f"left out: {left} runs that are not complete")) if left else side
    )
