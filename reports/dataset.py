"""Writes a campaign's tables as one data set in hive layout, which polars and DuckDB read lazily.

Files: TABLE/cell=NAME/repetition=N/level_FACTOR=LEVEL/run.parquet; packets and connections also have
point=NAME.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from contract import regular
from reports.damage import told
from reports.errors import RunDirectoryError
from reports.study import cell_lines, levels_of

ABOUT = "_vnet.json"  # file with the data set's description; readers skip names that begin with an underscore
# the value of a level that the cell does not have; readers show it as null
ABSENT = "__HIVE_DEFAULT_PARTITION__"
BY_POINT = ("packets", "connections")
Files = dict[Path, Path]  # path in the data set -> file of a run


@dataclass(frozen=True)
class Dataset:
    """A data set on disk: its directory, its number of runs, and the number of files of each table."""

    path: Path
    runs: int
    tables: dict[str, int]


def write_dataset(campaign_dir: Path, out: Path, *, copy: bool = False) -> Dataset:
    """Writes links to (with `copy`, copies of) the tables of all complete runs into `out`, and replaces an
    earlier data set there.

    RunDirectoryError if there is no such campaign, no complete run with tables, or if `out` holds something
    else.
    """
    with told(campaign_dir):
        runs = _runs(campaign_dir)
    files = {place: file for found in runs for place, file in found.items()}
    if not files:
        raise RunDirectoryError(
            f"{campaign_dir}: no run is complete and reduced; `vnet campaign run` makes runs, "
            "`vnet report --reduce` a run's tables"
        )
    _clear(out)
    out.mkdir(parents=True, exist_ok=True)
    about = {"campaign": str(campaign_dir.resolve()), "files": [str(place) for place in files]}
    (out / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    for place, file in files.items():
        _put(file, out / place, copy)
    tables = Counter(place.parts[0] for place in files)
    return Dataset(out, len(runs), dict(sorted(tables.items())))


def _runs(campaign_dir: Path) -> list[Files]:
    """Returns, for each complete run that has tables, its files by their place in the data set."""
    lines, _ = cell_lines(campaign_dir / "cells.jsonl")
    complete = [line for line in lines if line.get("state") == "complete"]
    names = list(dict.fromkeys(name for line in complete for name in levels_of(line)))
    found: list[Files] = []
    for line in complete:
        tables = _tables(campaign_dir / str(line.get("run_dir")))
        found.append({_place(line, names, table, point): file for table, point, file in tables})
    return [files for files in found if files]


def _tables(run_dir: Path) -> Iterator[tuple[str, str | None, Path]]:
    """Yields table name, capture point (None for tables of the whole run) and file of each table of a run."""
    for file in sorted(run_dir.glob("*.parquet")):
        yield file.stem, None, file
    for table in BY_POINT:
        for file in sorted((run_dir / table).glob("*.parquet")):
            yield table, file.stem, file


def _place(line: dict[str, Any], names: list[str], table: str, point: str | None) -> Path:
    """Returns the path of a run's table in the data set, with values quoted for paths; all files of a table
    have the same keys, and a run without a level has ABSENT as its value.
    """
    levels = levels_of(line)
    keys = {"cell": line.get("cell"), "repetition": line.get("repetition", 1)}
    keys |= {f"level_{name}": levels.get(name) for name in names}
    keys |= {} if point is None else {"point": point}
    parts = (f"{key}={ABSENT if v is None else quote(str(v), safe=' ')}" for key, v in keys.items())
    return Path(table, *parts, "run.parquet")


def _put(file: Path, place: Path, copy: bool) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if copy:
        shutil.copyfile(file, place)
    else:
        place.symlink_to(os.path.relpath(file.resolve(), place.parent.resolve()))


def _clear(out: Path) -> None:
    """Removes an earlier data set from `out`; RunDirectoryError if `out` holds anything else, or if its list
    names a file outside `out`.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        files = [out / str(name) for name in regular.read_json(out / ABOUT)["files"]]
    except (OSError, ValueError, TypeError, KeyError):
        raise RunDirectoryError(
            f"{out}: exists and is not a data set; name another place with --out"
        ) from None
    for file in files:
        if not file.parent.resolve().is_relative_to(out.resolve()):
            raise RunDirectoryError(f"{out / ABOUT}: names {file}, which is not below it; remove {out}")
    for file in files:
        file.unlink(missing_ok=True)
        for folder in file.relative_to(out).parents:
            with suppress(OSError):
                (out / folder).rmdir()
    (out / ABOUT).unlink(missing_ok=True)
