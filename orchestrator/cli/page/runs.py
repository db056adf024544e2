"""Lists runs and campaigns below a results directory, and checks which of their files may be shown."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from contract import findings, manifest, regular, seal
from contract.cells import NAME, is_below, read_cells

MOST = 400  # largest number of runs, and of campaigns, that are listed: the newest
DEEP = 5  # number of levels of directories that are searched
# Content types that a browser shows; it downloads other files.
TYPES = {
    ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
    ".css": "text/css; charset=utf-8", ".json": "application/json", ".csv": "text/plain; charset=utf-8",
    ".jsonl": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8",
    ".yaml": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
}  # fmt: skip


def single(results: Path) -> tuple[Path, str]:
    """Returns (results directory, ""); or (parent, name) if `results` is itself a run or campaign."""
    if any((results / name).is_file() for name in ("campaign.json", "manifest.json")):
        whole = results.resolve()
        return whole.parent, whole.name
    return results.absolute(), ""


def allowed(results: Path, path: str, only: str = "") -> Path | None:
    """Returns the regular file `path` below `results`, or below its directory `only` if that is not "".

    None if there is no such file, if a part of the path begins with a dot, or if a link leads out of the
    directory.
    """
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        return None
    if only and parts[0] != only:
        return None
    root = results.resolve()
    try:
        file = (root / path).resolve()
        return file if root / only in file.parents and file.is_file() else None
    except (OSError, RuntimeError):  # the name is too long, or links form a cycle
        return None


def runs(results: Path, only: str = "") -> dict[str, Any]:
    """Returns {runs, more, campaigns} below `results`, or below its directory `only`: the newest first, at
    most MOST of each. more: number of further runs.
    """
    found: list[dict[str, Any]] = []
    campaigns: list[dict[str, Any]] = []
    for directory in (
        [results / only, *_directories(results / only, DEEP)] if only else _directories(results, DEEP)
    ):
        path = directory.relative_to(results).as_posix()
        if (directory / "manifest.json").is_file():
            found.append({"path": path, **_run(directory)})
        elif (directory / "campaign.json").is_file():
            campaigns.append({"path": path, **_campaign(directory)})
    for of in (found, campaigns):
        of.sort(key=lambda one: str(one["changed_s"]), reverse=True)
    return {"runs": found[:MOST], "more": max(0, len(found) - MOST), "campaigns": campaigns[:MOST]}


def _directories(directory: Path, deep: int) -> Iterator[Path]:
    """Yields the directories of runs and campaigns at most `deep` levels below; follows no links, and skips
    hidden directories and the insides of runs.
    """
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
            continue
        below = Path(entry.path)
        is_run = (below / "manifest.json").is_file()
        if is_run or (below / "campaign.json").is_file():
            yield below
        if deep > 1 and not is_run:
            yield from _directories(below, deep - 1)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = regular.read_json(path)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _about(directory: Path, file: str) -> dict[str, Any]:
    return {
        "changed_s": (directory / file).stat().st_mtime,
        "report": (directory / "report" / "index.html").is_file(),
    }


def _run(directory: Path) -> dict[str, Any]:
    about = _about(directory, "manifest.json")
    try:
        found = manifest.written(directory)
    except (OSError, ValueError):
        return {**about, "lab": directory.parent.name, "state": "unreadable", "run": directory.name}
    return {
        **about, "lab": found.lab, "run": directory.name, "state": found.state or "unknown",
        "time": found.time or "real", "suspect": suspect(directory),
        "kernel": str(found.kernel.get("kind", "")), "warnings": len(found.warnings),
        "error": found.error or None,
    }  # fmt: skip


def suspect(run_dir: Path) -> bool:
    """Returns whether manifest and seal make the run suspect; does not read unchanged files again."""
    files = sorted([run_dir / "manifest.json", run_dir / seal.NAME, *run_dir.glob("*.parquet")])
    return _suspect(run_dir, tuple(map(_stamp, files)))


def _stamp(file: Path) -> tuple[int, int]:
    try:
        about = file.stat()
    except OSError:
        return (0, 0)
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=4096)
def _suspect(run_dir: Path, _: tuple[tuple[int, int], ...]) -> bool:
    try:
        return findings.why(findings.read(run_dir)) is not None
    except (OSError, ValueError):
        return True  # a run with an unreadable manifest is suspect


def _campaign(directory: Path) -> dict[str, Any]:
    about = _about(directory, "campaign.json")
    said = _read(directory / "campaign.json") or {}
    cells = cells_of(directory)
    return {**about, "name": str(said.get("name", directory.name)), "cells": cells}


def cells_of(directory: Path) -> list[dict[str, Any]]:
    """Returns {cell, state, run_dir, error} of each cell that has begun, including running ones."""
    last: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError):
        for _, _, line in read_cells(directory / NAME):
            if line is not None:
                last[str(line["cell"])] = line
    for path in sorted(directory.glob("running*.json")):
        if (parsed := _read(path)) is not None and is_below(parsed.get("run_dir")):
            last[str(parsed.get("cell"))] = {**parsed, "state": "running"}
    return [
        {"cell": name, "state": str(line.get("state", "")), "run_dir": str(line.get("run_dir", "")),
         "error": str(line["error"]) if line.get("error") else None}
        for name, line in last.items()
    ]  # fmt: skip


def matrix(directory: Path) -> dict[str, Any]:
    """Returns {name, command, cells, running, ours, said, left_s, report} of a campaign.

    cells: all planned cells in order, with levels, state, headline figures, and whether they are suspect.
    left_s: seconds, or None. Raises CampaignError if campaign.json is damaged.
    """
    from orchestrator.campaign import journal
    from orchestrator.campaign.campaign import status
    from orchestrator.cli.page.campaigns import headline, how_it_runs

    about = journal.read_campaign(directory)
    ended = {one["cell"]: one for one in cells_of(directory)}
    cells = []
    for planned in about.get("cells", []):
        name = str(planned.get("cell"))
        one = ended.get(name, {"state": "to come", "run_dir": "", "error": None})
        run_dir = directory / one["run_dir"] if one["run_dir"] else None
        cells.append({
            **one, "cell": name, "levels": planned.get("levels", {}), "repetition": planned.get("repetition"),
            "headline": headline(run_dir) if run_dir else "",
            "report": run_dir is not None and (run_dir / "report" / "index.html").is_file(),
            "suspect": run_dir is not None and suspect(run_dir),
        })  # fmt: skip
    return {
        "name": str(about.get("name")), "command": str(about.get("command", "")), "cells": cells,
        **how_it_runs(directory), "left_s": status(directory).left_s,
        "report": (directory / "report" / "index.html").is_file(),
    }  # fmt: skip
