"""`vnet report`: reduce and report again on what a run or campaign left."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import CliError
from orchestrator.cli.headlines import show
from orchestrator.cli.junit import judged, junit_option
from orchestrator.cli.output import json_option, print_json


@click.command("report")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--reduce", "again", is_flag=True, help="First reduce the raw files again.")
@junit_option
@json_option
def report_command(directory: Path, again: bool, junit: Path | None, as_json: bool) -> None:
    """Write the report page of a run or campaign DIRECTORY.

    \b
    Example:  vnet report results/pair/20260131T120000
    """
    from reports.damage import told
    from reports.rundir import RunDirectoryError

    try:
        with told(directory), judged(junit, directory) as judge:
            page = write(directory, again)
            judge(directory)
            if as_json:
                print_json({"directory": str(directory), "page": str(page)})
            else:
                show(directory, page)
    except RunDirectoryError as error:
        raise CliError(str(error)) from error


def write(directory: Path, again: bool) -> Path:
    """The page's path; CliError where `directory` holds no run and no campaign."""
    from capture.errors import CaptureError
    from capture.reduce import reduce_run
    from reports.damage import told
    from reports.report import campaign_report, report
    from reports.rundir import RunDirectoryError

    try:
        if (directory / "campaign.json").exists():
            return campaign_report(directory)
        if again or not (directory / "nodes.parquet").exists():
            with told(directory):
                reduce_run(directory)
        return report(directory)
    except (CaptureError, RunDirectoryError) as error:
        raise CliError(str(error)) from error
