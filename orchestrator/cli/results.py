"""Implements `vnet results`: lists, removes and archives runs and campaigns by age, size and verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import DONE, FAILED, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, table
from orchestrator.cli.quantities import AGE, SIZE

if TYPE_CHECKING:
    from orchestrator.campaign.held import Entry

# Equal to orchestrator.campaign.held.WORDS, which --help must not import; a test compares both.
WORDS = ("running", "failed", "interrupted", "suspect", "fails", "cannot tell", "no verdict", "holds")


def _choice(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the argument DIRECTORY and the options `--older`, `--larger` and `--verdict`, which choose
    entries, to a command.
    """
    options = (
        click.argument("directory", required=False, default=Path("results"), type=click.Path(path_type=Path)),
        click.option("--older", type=AGE, metavar="AGE", help="Ended at least this long ago: 30 d, 12 h."),
        click.option("--larger", type=SIZE, metavar="SIZE", help="At least this large on the disk: 1 GB."),
        click.option(
            "--verdict", "words", multiple=True, type=click.Choice(WORDS), help="Any of these (repeat it)."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group("results")
def results_command() -> None:
    """List, remove and archive runs and campaigns by age, size and verdict.

    A campaign is one entry with all its runs. The verdict of a run or campaign is the first of these that
    occurs in it: running, failed, interrupted, suspect, fails, cannot tell, no verdict, holds.
    """


@results_command.command("ls")
@_choice
@json_option
def ls_command(
    directory: Path, older: int | None, larger: int | None, words: tuple[str, ...], as_json: bool
) -> None:
    """List runs and campaigns below DIRECTORY (results), the largest first.

    \b
    Example:  vnet results ls
              vnet results ls --older "30 d" --verdict fails --verdict suspect
    """
    found = _chosen(directory, older, larger, words)
    now = time.time()
    if as_json:
        print_json([_facts(held, now) for held in found])
        return
    _show(found, now)
    note(_sum(found) if found else f"{directory}: no such run")


@results_command.command("prune")
@_choice
@click.option("--yes", is_flag=True, help="Remove them; without it they are only listed.")
def prune_command(
    directory: Path, older: int | None, larger: int | None, words: tuple[str, ...], yes: bool
) -> int:
    """Remove the runs and campaigns below DIRECTORY (results) that meet all conditions; name at least one.

    \b
    Example:  vnet results prune --older "90 d" --verdict interrupted
              vnet results prune --older "90 d" --verdict interrupted --yes
    """
    from orchestrator.campaign import held

    found = _meant("prune", directory, older, larger, words)
    if not yes:
        note(f"would remove {_sum(found)}; add --yes to remove them" if found else "nothing to remove")
        return DONE
    return _each(found, "removed", held.remove)


@results_command.command("archive")
@_choice
@click.option(
    "--to", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Directory for the files."
)
@click.option("--yes", is_flag=True, help="Archive them; without it they are only listed.")
def archive_command(
    directory: Path, older: int | None, larger: int | None, words: tuple[str, ...], to: Path, yes: bool
) -> int:
    """Pack runs and campaigns below DIRECTORY (results) that meet all conditions: each to DIR/LAB.RUN.tar.gz.

    Each file is read back and compared before its directory is removed. `tar xf FILE -C results/LAB` restores
    a run.

    \b
    Example:  vnet results archive --older "30 d" --to /srv/archive --yes
    """
    from orchestrator.campaign import archiving

    found = _meant("archive", directory, older, larger, words)
    if not yes:
        note(f"would archive {_sum(found)} to {to}; add --yes to do it" if found else "nothing to archive")
        return DONE
    return _each(found, f"archived to {to}", lambda one: archiving.archive(one, to))


def _meant(
    what: str, directory: Path, older: int | None, larger: int | None, words: tuple[str, ...]
) -> list[Entry]:
    """Prints and returns the entries that meet the conditions, to be removed or archived; CliError without
    any condition.
    """
    if older is None and larger is None and not words:
        raise CliError(f"{what}: no condition: give --older, --larger or --verdict", USAGE)
    found = _chosen(directory, older, larger, words)
    _show(found, time.time())
    return found


def _chosen(directory: Path, older: int | None, larger: int | None, words: tuple[str, ...]) -> list[Entry]:
    from orchestrator.campaign import held

    try:
        return held.chosen(directory, held.Choice(None if older is None else older / 1e9, larger, words))
    except held.EntryError as error:
        raise CliError(str(error), USAGE) from None


def _each(found: list[Entry], done: str, act: Callable[[Entry], object]) -> int:
    """Calls `act` with each entry, prints errors and continues, then prints how many entries are `done`;
    returns DONE, or FAILED after an error.
    """
    from orchestrator.campaign.held import EntryError

    went: list[Entry] = []
    for one in found:
        try:
            act(one)
        except (EntryError, OSError) as error:
            note(str(error))
        else:
            went.append(one)
    note(f"{done}: {_sum(went)}")
    return DONE if len(went) == len(found) else FAILED


def _show(found: list[Entry], now: float) -> None:
    if not found:
        return
    rows = [
        [
            str(h.path),
            h.kind,
            str(h.runs),
            _size(h.size_bytes),
            _size(h.captures_bytes),
            _age(h.age_s(now)),
            h.word,
        ]
        for h in found
    ]
    heads = ("path", "kind", "runs", "size", "captures", "age", "verdict")
    console().print(table(heads, rows, right=("runs", "size", "captures", "age")))


def _facts(held: Entry, now: float) -> dict[str, Any]:
    return {
        "path": str(held.path), "kind": held.kind, "runs": held.runs, "size_bytes": held.size_bytes,
        "captures_bytes": held.captures_bytes, "age_s": round(held.age_s(now)), "verdict": held.word,
    }  # fmt: skip


def _sum(found: list[Entry]) -> str:
    entries = f"{len(found)} {'entry' if len(found) == 1 else 'entries'}"
    return f"{entries}, {_size(sum(h.size_bytes for h in found))}"


def _size(size_bytes: int) -> str:
    unit, factor = next((u for u in (("GB", 1e9), ("MB", 1e6)) if size_bytes >= u[1]), ("kB", 1e3))
    return f"{size_bytes / factor:.1f} {unit}"


def _age(seconds: float) -> str:
    unit, factor = next((u for u in (("d", 86400), ("h", 3600), ("min", 60)) if seconds >= u[1]), ("s", 1))
    return f"{seconds / factor:.0f} {unit}"
