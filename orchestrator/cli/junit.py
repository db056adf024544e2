"""Implements `--junit FILE`, which writes the verdicts of a run or campaign for continuous integration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from orchestrator.cli.errors import CliError, expected

F = TypeVar("F", bound=Callable[..., Any])


def junit_option(command: F) -> F:
    """Adds the option `--junit FILE` to a command."""
    return click.option(
        "--junit",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write expectations, link checks, guarantees and claims there as JUnit test cases.",
    )(command)


@contextmanager
def judged(junit: Path | None, topology: Path) -> Iterator[Callable[[Path], None]]:
    """Yields a function that writes the verdicts of a run or campaign directory to the file `junit`. At
    first, and again if an exception leaves the context, the file reports an unfinished run. Otherwise a
    reader could take the file of an earlier run for this one's. Does nothing if `junit` is None. Raises
    CliError if the file cannot be written.
    """
    if junit is None:
        yield lambda _directory: None
        return
    from reports.junit import unfinished

    _put(junit, unfinished(topology.stem, "has not ended"))
    try:
        yield lambda directory: _put(junit, _verdicts(directory, topology))
    except Exception as error:
        known = expected(error)
        _put(junit, unfinished(topology.stem, known.text if known else str(error)))
        raise


def _verdicts(directory: Path, topology: Path) -> str:
    from reports.errors import RunDirectoryError
    from reports.junit import junit, unfinished

    try:
        return junit(directory)
    except RunDirectoryError as error:
        return unfinished(topology.stem, str(error))


def _put(junit: Path, text: str) -> None:
    try:
        junit.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{junit}: cannot be written: {error.strerror}; choose another --junit") from error
