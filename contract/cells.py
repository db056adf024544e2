"""Reads cells.jsonl, and finds the run that counts for a campaign's cell: the last one in the file.

A cell has several lines if it failed or was interrupted and was run again, or if it was suspect and the
campaign runs suspect cells again. Imports the standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from contract import regular

NAME = "cells.jsonl"
COMPLETE = "complete"
Line = Mapping[str, Any]


def read_cells(path: Path) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Yields number, text and object of each line of cells.jsonl; None instead of the object for a line
    that is no cell's, as after kill -9, or whose run is not below the campaign. OSError if the file cannot
    be read.
    """
    for number, text in enumerate(regular.read_bytes(path).decode(errors="replace").splitlines(), 1):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        yield number, text, found if _is_line(found) else None


def _is_line(found: Any) -> bool:
    named = isinstance(found, dict) and isinstance(found.get("cell"), str)
    return named and (not found.get("run_dir") or is_below(found["run_dir"]))


def is_below(path: Any) -> bool:
    """Returns True if a value is a relative path that does not lead out of the directory it is added to."""
    parts = PurePath(path).parts if isinstance(path, str) and "\0" not in path else ()
    return bool(parts) and not PurePath(path).is_absolute() and ".." not in parts


def set_aside(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Returns for each cell the lines of its complete runs that do not count, in their order."""
    by_cell: dict[str, list[Line]] = {}
    for line in lines:
        by_cell.setdefault(str(line["cell"]), []).append(line)
    found = {
        name: [line for line in several[:-1] if line.get("state") == COMPLETE]
        for name, several in by_cell.items()
    }
    return {name: earlier for name, earlier in found.items() if earlier}
