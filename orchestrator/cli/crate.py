"""Implements `vnet crate`, which packs a run or campaign for somebody without the tree that made it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from orchestrator.cli.errors import CliError
from orchestrator.cli.output import say


@click.command("crate")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The file to write; DIRECTORY.crate.zip.")
@click.option("--license", "license_", default="not stated", help="Under which others may use it.")
@click.option("--date", help="Date of publication, such as 2026-01-31; default: today.")
def crate_command(directory: Path, out: Path | None, license_: str, date: str | None) -> None:
    """Pack the run or campaign in DIRECTORY as an RO-Crate.

    The crate is a ZIP file with the measurements, and with the seed, kernel, programs' hashes and verdicts of
    each run as metadata. `vnet verify CRATE` checks it anywhere. Pages and logs are left out.

    \b
    Example:  vnet crate results/pair/20260131T120000 --license CC-BY-4.0
    """
    from reports.crate.metadata import Stated
    from reports.crate.pack import pack
    from reports.rundir import RunDirectoryError

    crate = out or directory.with_name(f"{directory.name}.crate.zip")
    published = date or datetime.now(UTC).date().isoformat()
    try:
        number = pack(directory.resolve(), crate, Stated(license_, published))
    except RunDirectoryError as error:
        raise CliError(str(error)) from error
    say(f"{crate}: {number} files, {crate.stat().st_size:,} bytes")
