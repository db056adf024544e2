"""Writes the output of commands: text and tables for people, JSON for scripts, with control characters
escaped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.language.terminal import escaped, printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

NAMES = 24  # largest number of characters in the first column; longer names wrap
BETWEEN = 3  # number of characters between two columns
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def print_json(value: Any) -> None:
    """Prints the value as one JSON document on standard output, with control characters escaped."""
    click.echo(escaped(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False)))


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Prints text for the user, with control characters escaped. err: print on standard error; nl: add a
    newline.
    """
    click.echo(printable(text), err=err, nl=nl)


def document(text: str, *, nl: bool = True) -> None:
    """Prints text for a file or program unchanged; on a terminal, escapes its control characters."""
    click.echo(printable(text) if sys.stdout.isatty() else text, nl=nl)


def console(*, stderr: bool = False) -> Console:
    """Returns a rich console on standard output or error that escapes control characters; in a pipe it is 200
    characters wide, so that tables fit.
    """
    from rich.console import Console

    class PlainWords(Console):
        """A rich console that escapes control characters of texts, but keeps those of its own styles."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

        def on_broken_pipe(self) -> None:
            """Raises BrokenPipeError, which main.py handles; rich would end the process."""
            raise BrokenPipeError

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


def print_result(
    rows: list[list[str]], lines: Iterable[tuple[str, str]], last: str, first: Iterable[tuple[str, str]] = ()
) -> None:
    """Prints the lines `first` with their styles, a table (the head is its first row; as many columns as
    fit), the lines `lines`, and the line `last` with its beginning in bold. Leaves out an empty table and an
    empty `last`.
    """
    from rich.text import Text

    out = console()
    for line, style in first:
        out.print(Text(line, style=style))
    if rows:
        shown = fitting(rows, out.width)
        narrow = [row[:shown] for row in rows]
        out.print(table(narrow[0], narrow[1:], right=narrow[0][1:]))
        if more := len(rows[0]) - shown:
            out.print(Text(f"the report has {more} more columns", style="dim"))
    for line, style in lines:
        out.print(Text(line, style=style))
    if last:
        name, colon, value = last.partition(": ")
        out.print(Text.assemble((name + colon, "bold"), value), soft_wrap=True)


def fitting(rows: list[list[str]], width: int) -> int:
    """Returns the number of columns that fit into `width` characters without breaking a word or figure; at
    least two, if there are two.
    """
    taken = min(NAMES, max(len(row[0]) for row in rows)) + BETWEEN
    for number, column in enumerate(list(zip(*rows, strict=True))[1:], 1):
        taken += max((len(word) for cell in column for word in cell.split()), default=0) + BETWEEN
        if taken > width and number > 1:
            return number
    return len(rows[0])


def note(text: str) -> None:
    """Prints a line on standard error, since standard output holds only the answer of a command."""
    say(text, err=True)
