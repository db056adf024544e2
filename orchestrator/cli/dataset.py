"""Implements `vnet campaign dataset`, which writes the tables of a campaign's runs as one data set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from orchestrator.cli.errors import REFUSED, CliError
from orchestrator.cli.output import json_option, print_json, say


@click.command("dataset")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The data set; by default DIRECTORY/dataset.")
@click.option("--copy", is_flag=True, help="Copy the tables instead of linking them.")
@json_option
def dataset_command(directory: Path, out: Path | None, copy: bool, as_json: bool) -> None:
    """Write the tables of all complete runs of the campaign in DIRECTORY as one data set.

    It has hive partitions by cell, repetition and levels; polars and DuckDB read it lazily. Writing it again
    adds runs that are complete by then.

    \b
    Example:  vnet campaign dataset results/udp-request
    """
    from reports.dataset import write_dataset
    from reports.errors import RunDirectoryError

    try:
        made = write_dataset(directory, out or directory / "dataset", copy=copy)
    except RunDirectoryError as error:
        raise CliError(str(error), REFUSED) from error
    if as_json:
        print_json({**asdict(made), "path": str(made.path)})
    else:
        tables = ", ".join(made.tables)
        say(f"{made.path}: {made.runs} runs, tables: {tables}")
