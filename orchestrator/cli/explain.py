"""Implements `vnet explain`, which explains keys of topology files."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from orchestrator.cli.completing import topology_keys
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import console, json_option, print_json, say, table

if TYPE_CHECKING:
    from orchestrator.topology.explain import Entry

COLUMNS = ("key", "value", "default", "meaning")
MOST_ON_A_LINE = 5  # largest number of alternatives of a value on one line; more become a list


@click.command("explain")
@click.argument("key", required=False, shell_complete=topology_keys)
@json_option
def explain_command(key: str | None, as_json: bool) -> None:
    """Explain KEY of topology files: a path, or a key's name alone; without KEY, list the top-level keys.

    \b
    Example:  vnet explain links.wan.both.delay
              vnet explain jitter
    """
    from orchestrator.topology.explain import UnknownKeyError, explain, whole_file

    try:
        found = explain(key) if key else whole_file()
    except UnknownKeyError as error:
        raise CliError(str(error), USAGE) from error
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in found])
    elif key:
        for number, entry in enumerate(found):
            if number:
                say("")
            _show(entry)
    else:
        console().print(table(COLUMNS, map(_row, found)))


def _show(entry: Entry) -> None:
    kinds = _plain(entry.value).split(" or ")
    meanings = _plain(entry.meaning).split(" Or: ")
    if len(kinds) > MOST_ON_A_LINE:
        say(f"{entry.path}: one of these kinds")
        for line in meanings if len(meanings) > 1 else [one.rsplit(": ", 1)[-1] for one in kinds]:
            say(f"  - {line}")
    else:
        say(f"{entry.path}: {_plain(entry.value)}")
    if entry.default:
        default = _plain(entry.default)
        say(f"  {default if default == 'required' else f'default: {default}'}")
    if entry.meaning and (len(meanings) == 1 or len(kinds) <= MOST_ON_A_LINE):
        say(f"  {entry.meaning}")
    if entry.keys:
        console().print(table(COLUMNS, map(_row, entry.keys)))


def _row(entry: Entry) -> tuple[str, str, str, str]:
    return entry.path, _plain(entry.value), _plain(entry.default), _plain(entry.meaning)


def _plain(markdown: str) -> str:
    """Returns the text without Markdown's marks of code and emphasis."""
    return markdown.replace("`", "").replace("*", "")
