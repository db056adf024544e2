"""What the command line writes: rich tables for people, JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False))


def console(*, stderr: bool = False) -> Console:
    """A rich console; in a pipe it is wide, so that no table cell is cut."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    title: str = "",
) -> Table:
    """A light table; `right` names the columns that hold numbers. Plain cells are shown as they stand."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False
    )
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", header_style="bold cyan")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def note(text: str) -> None:
    """A line beside the answer: on stderr, so that a pipe carries the answer only."""
    click.echo(text, err=True)
