"""Implements `vnet report`, which writes the report of a run or campaign directory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.headlines import show
from orchestrator.cli.junit import judged, junit_option
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.quantities import DURATION, RATE
from orchestrator.cli.run import expectations, judged_status, strict_option


@click.command("report")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--reduce", "again", is_flag=True, help="Reduce the raw files again first.")
@click.option(
    "--node-time",
    type=DURATION,
    help="Longest time in which a node sends or receives a message, for the bounds.",
)
@click.option(
    "--machine-rate", type=RATE, help="Rate of links without one, for the bounds, such as '1 Gbit/s'."
)
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A run of the same file without the studied load or impairments: latency plots show its medians.",
)
@strict_option
@junit_option
@json_option
def report_command(
    directory: Path,
    again: bool,
    node_time: int | None,
    machine_rate: int | None,
    control: Path | None,
    strict: bool,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Write the report page of a run or campaign DIRECTORY.

    \b
    Example:  vnet report results/pair/20260131T120000
    """
    from reports.control import record
    from reports.damage import told
    from reports.rundir import RunDirectoryError

    if control is not None and (directory / "campaign.json").exists():
        raise CliError("--control: belongs to a run; name a run of the campaign", USAGE)
    try:
        with told(directory), judged(junit, directory) as judge:
            if control is not None:
                record(directory, control)
            page = write(directory, again, node_time, machine_rate)
            judge(directory)
            suspect = doubted(directory)
            if as_json:
                print_json(
                    {
                        "directory": str(directory),
                        "page": str(page),
                        "suspect": bool(suspect),
                        "expectations": expectations(directory),
                    }
                )
            else:
                show(directory, page)
                for line in suspect:
                    note(line)
    except RunDirectoryError as error:
        raise CliError(str(error)) from error
    return judged_status(directory, suspect=bool(suspect), strict=strict)


def doubted(directory: Path) -> list[str]:
    """Returns a line for each finding that makes the run suspect, or a complete run of the campaign, and a
    line for each run of the campaign that is not complete.
    """
    from contract import findings
    from reports.study import cell_lines

    runs, found = {"": directory}, list[str]()
    if (directory / "campaign.json").exists():
        lines, _ = cell_lines(directory / "cells.jsonl")
        complete = [line for line in lines if line.get("state") == "complete"]
        runs = {f"{line.get('cell')}: ": directory / str(line["run_dir"]) for line in complete}
        for line in (line for line in lines if line not in complete):
            why = f": {line['error']}" if line.get("error") else ""
            found.append(f"suspect: {line.get('cell')}: the run's state is {line.get('state')!r}{why}")
    for place, run_dir in runs.items():
        found += [f"suspect: {place}{reason}" for reason in findings.reasons(findings.read(run_dir))]
    return found


def write(directory: Path, again: bool, node_ns: int | None = None, machine_bps: int | None = None) -> Path:
    """Writes the report of a run or campaign and returns the page's path; CliError if it cannot be written. A
    run is first reduced if `again`, if it has no tables, or if its lab was killed and no end was recorded;
    its delay bounds are recorded as well. node_ns, machine_bps: assumptions for the bounds; None uses the
    recorded ones.
    """
    from capture.errors import CaptureError
    from capture.reduce import reduce_run
    from contract import manifest, rundir
    from orchestrator.lab import dead
    from orchestrator.plan.bounds.record import record_bounds
    from reports.damage import told
    from reports.report import campaign_report, report
    from reports.rundir import RunDirectoryError

    try:
        if (directory / "campaign.json").exists():
            return campaign_report(directory)
        ended = dead.settle(directory)
        if again or ended or not (directory / "nodes.parquet").exists():
            with told(directory):
                reduce_run(directory)
        if (directory / rundir.PLAN).exists():
            with told(directory), suppress(rundir.UnreadableError):  # the report itself shows this error
                plan, time = rundir.read_plan(directory), manifest.load(directory).time or "real"
                record_bounds(directory, plan, time, node_ns, machine_bps)
        return report(directory)
    except (CaptureError, RunDirectoryError) as error:
        raise CliError(str(error)) from error
