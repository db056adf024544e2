"""Implements `vnet baseline`, which writes the figures of a run or campaign to a file that `vnet compare`
reads.
"""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import REFUSED, CliError
from orchestrator.cli.output import json_option, note, print_json, say


@click.group("baseline")
def baseline_command() -> None:
    """Keep figures of a run or campaign for later comparisons."""


@baseline_command.command("save")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--metric", "also", multiple=True, metavar="NAME", help="Keep this figure, too (repeat it).")
@json_option
def save_command(directory: Path, file: Path, also: tuple[str, ...], as_json: bool) -> None:
    """Write the judged figures of the run or campaign DIRECTORY to FILE, which is small enough to commit.

    An earlier baseline of that name is replaced; any other file is not.

    \b
    Example:  vnet baseline save results/old baseline.json
              vnet compare baseline.json results/new
    """
    from dataclasses import asdict

    from reports.compare.baseline import save
    from reports.compare.errors import CompareError
    from reports.compare.reading import read_side
    from reports.damage import told
    from reports.errors import RunDirectoryError

    try:
        with told(directory):
            side = read_side("A", directory)
        written = save(side, file, also)
    except (CompareError, RunDirectoryError) as error:
        raise CliError(str(error), REFUSED) from error
    if as_json:
        print_json({**asdict(written), "path": str(written.path)})
        return
    if any(one.suspect for one in side.samples):
        note(f"{directory}: is suspect, and so is its baseline; `vnet report {directory}` shows why")
    kilobytes = f"{written.size_bytes / 1e3:.1f} kB"
    say(f"{written.path}: {written.samples} runs, {written.figures} figures, {kilobytes}")
