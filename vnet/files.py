"""Reads the files of a run directory; a file that is missing or damaged raises a LoadError with
the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from contract import regular, retired

from .errors import LoadError

T = TypeVar("T")

NOT_REDUCED = "the run was not reduced, or ended before that: `vnet report --reduce DIR` makes the tables"


def read_json(path: Path, remedy: str = NOT_REDUCED) -> Any:
    """Returns the content of a JSON file; LoadError if the file is missing (the error then ends with
    `remedy`) or unreadable.
    """
    return read_by(lambda _: regular.read_json(path), path, remedy)


def read_by(read: Callable[[Path], T], path: Path, remedy: str = NOT_REDUCED) -> T:
    """Returns the result of `read` for the directory of the file `path`; LoadError if the file is missing
    (the error then ends with `remedy`) or unreadable.
    """
    try:
        return read(path.parent)
    except FileNotFoundError:
        raise LoadError(f"{path}: is not there; {remedy}") from None
    except (OSError, ValueError) as error:
        raise LoadError(f"{path}: cannot be read: {error}; the run was cut off while it wrote it") from error


def scan(path: Path, others: list[str]) -> pl.LazyFrame:
    """Returns a Parquet table as a lazy frame, with files and columns of earlier versions renamed; LoadError
    if it is unreadable or missing. The text for a missing table lists `others`, the tables present.
    """
    if (file := retired.there(path)) is None:
        there = ", ".join(others) or "none"
        raise LoadError(f"{path}: is not there (there are: {there}); {NOT_REDUCED}")
    try:
        frame = pl.scan_parquet(file)
        frame = frame.rename(retired.columns(path.stem, frame.collect_schema().names()))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise LoadError(f"{path}: cannot be read: {error}; reduce the run again") from error
    return frame


def names(directory: Path) -> list[str]:
    """Returns the names of the tables (*.parquet) in a directory, sorted; names of earlier versions become
    the current ones.
    """
    present = {old: new for new, old in retired.FILES.items()}
    return sorted(Path(present.get(file.name, file.name)).stem for file in directory.glob("*.parquet"))


def rows(found: list[dict[str, Any]]) -> pl.DataFrame:
    """Returns a frame of the objects; if a column has a text in any of them, all its values except null
    become texts.
    """
    mixed = {key for row in found for key, value in row.items() if isinstance(value, str)}
    texts = [
        {key: str(v) if key in mixed and v is not None else v for key, v in row.items()} for row in found
    ]
    return pl.DataFrame(texts, infer_schema_length=None)
