"""Files that do not hold what a run writes: said, whatever part of them broke the reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from capture import seal
from reports.errors import RunDirectoryError

# What reading a value of another type, name or size than it was written with comes to.
BROKEN = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
LONGEST = 200


@contextmanager
def told(directory: Path) -> Iterator[None]:
    """RunDirectoryError in place of what a damaged file brings about; with VNET_DEBUG as it came."""
    try:
        yield
    except RunDirectoryError:
        raise
    except BROKEN as error:
        if os.environ.get("VNET_DEBUG"):
            raise
        said = " ".join(str(error).split())[:LONGEST]
        changed = seal.altered(directory)
        where = (
            f"changed since: {', '.join(changed)}" if changed else "none changed since, as far as is known"
        )
        raise RunDirectoryError(
            f"{directory}: cannot be reported: its files do not hold what a run writes ({where}; "
            f"{type(error).__name__}: {said}); `vnet report --reduce` makes its tables anew, and "
            "VNET_DEBUG=1 shows the place"
        ) from error
