"""Turns failures to read damaged files into one error that names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from contract import seal
from reports.errors import RunDirectoryError

# Errors raised by reading a value of an unexpected type, name or size.
BROKEN = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
LONGEST = 200


@contextmanager
def told(directory: Path) -> Iterator[None]:
    """Turns errors that damaged files in `directory` cause inside the `with` block into a RunDirectoryError
    that names the changed files; with VNET_DEBUG set, the original error passes.
    """
    try:
        yield
    except RunDirectoryError:
        raise
    except BROKEN as error:
        if os.environ.get("VNET_DEBUG"):
            raise
        said = " ".join(str(error).split())[:LONGEST]
        changed = seal.altered(directory)
        where = f"changed since then: {', '.join(changed)}" if changed else "no change is known"
        raise RunDirectoryError(
            f"{directory}: no report is possible: its files differ from those that a run writes ({where}; "
            f"{type(error).__name__}: {said}); `vnet report --reduce` makes its tables again, and "
            "VNET_DEBUG=1 shows the place"
        ) from error
