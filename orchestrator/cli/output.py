"""Writes the output of commands: text and tables for people, JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.language.terminal import escaped, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def print_json(value: Any) -> None:
    """Prints the value as one JSON document on standard output."""
    click.echo(escaped(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False)))


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Prints text for people, with control characters escaped; err: on standard error, nl: with a newline."""
    click.echo(printable(text), err=err, nl=nl)


def document(text: str, *, nl: bool = True) -> None:
    """Prints text for a file or program unchanged; on a terminal, escapes its control characters."""
    click.echo(printable(text) if sys.stdout.isatty() else text, nl=nl)


def console(*, stderr: bool = False) -> Console:
    """Returns a rich console; in a pipe it is 200 characters wide, so that tables fit."""
    from orchestrator.cli.plain_words import PlainWords

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return PlainWords(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    title: str = "",
) -> Table:
    """Returns a rich table; aligns the columns of `right` on the right, and reads no markup in str cells."""
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
    """Prints a line on standard error, since standard output is for the answer of a command."""
    say(text, err=True)
