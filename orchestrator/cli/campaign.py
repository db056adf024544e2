"""Implements `vnet campaign run`, `status` and `dataset`; registers `fetch` from its module."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from orchestrator.cli.errors import FAILED, INTERRUPTED, REFUSED, USAGE, CliError
from orchestrator.cli.fetch import fetch_command
from orchestrator.cli.jobs import CellView, JobsView
from orchestrator.cli.junit import judged, junit_option
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.run import expectations, fail_if_option, judged_status, strict_option
from orchestrator.cli.topologies import (
    RESULTS,
    file_argument,
    kernel_option,
    lab_option,
    parameters_option,
    place_options,
    refuse_host_clock,
    seed_option,
    time_option,
)
from orchestrator.run.directories import Place

if TYPE_CHECKING:
    from orchestrator.campaign.campaign import Summary
    from orchestrator.campaign.engines.engine import Engine
    from orchestrator.campaign.settings import Settings

MOST_NAMED = 10  # largest number of failed and suspect cells that are listed


@click.group("campaign")
def campaign_command() -> None:
    """A campaign runs a topology at every combination of its factors' levels, several times."""


campaign_command.add_command(fetch_command)


@campaign_command.command("run")
@file_argument
@parameters_option
@kernel_option
@lab_option
@time_option
@seed_option
@place_options("NAME")
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Runs side by side, each on a core; for --time virtual, where they cannot disturb one another. "
    "Short for --on local:N.",
)
@click.option(
    "--on",
    "on",
    metavar="[local:N|dask://HOST:PORT|tls://HOST:PORT|slurm:N]",
    help="Engine that the runs are tasks of: workers here, a Dask scheduler's, or jobs of Slurm.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Also run failed cells again, not only unfinished ones.",
)
@click.option(
    "--page/--no-page",
    default=True,
    show_default=True,
    help="Write the pages of the campaign and of all its runs at the end; `vnet report` does it later.",
)
@fail_if_option
@junit_option
@strict_option
@json_option
def run_command(
    file: Path,
    parameters: dict[str, str],
    kernel: str,
    lab: str | None,
    time_mode: str,
    seed: int | None,
    place: Place,
    jobs: int,
    on: str | None,
    retry_failed: bool,
    page: bool,
    fail_if: tuple[str, ...],
    junit: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Run the campaign of FILE, or resume it after it was stopped or killed.

    FILE may be the directory of a campaign that has begun, and so may --out. A failed cell is recorded, and
    the others run.

    \b
    Example:  vnet campaign run topologies/udp-request.yaml -p clients=50
    """
    from orchestrator.campaign.campaign import run_campaign
    from orchestrator.campaign.settings import Settings

    with judged(junit, file) as judge, refused():
        settings, directory = Settings(file, parameters, kernel, lab, time_mode, seed, fail_if), place.out
        if file.is_dir():
            settings, directory = _begun(file, parameters, seed, fail_if)
            _insist_same({"kernel": settings.kernel, "lab": settings.lab, "time_mode": settings.time}, file)
        refuse_host_clock(settings.time, settings.kernel)
        engine = engine_for(jobs, on, settings)
        directory = directory or place.results / _name(settings.file, parameters)
        view = JobsView() if engine else CellView()
        summary = run_campaign(settings, directory, view, engine, page=page, retry_failed=retry_failed)
        judge(directory)
    if as_json:
        print_json(as_data(directory, summary))
    else:
        _conclude(directory, summary, view.printed)
    return status_of(summary, strict, directory)


def status_of(summary: Summary, strict: bool, directory: Path) -> int:
    """Returns the exit status of a campaign: INTERRUPTED; FAILED if a cell failed; else `judged_status`."""
    if summary.interrupted:
        return INTERRUPTED
    if summary.failed:
        return FAILED
    return judged_status(directory, suspect=bool(summary.suspect), strict=strict)


@campaign_command.command("status")
@click.argument("directory", type=click.Path(path_type=Path))
@strict_option
@json_option
def status_command(directory: Path, strict: bool, as_json: bool) -> int:
    """Show the progress of the campaign in DIRECTORY, with its failed and suspect runs and its expectations.

    \b
    Example:  vnet campaign status results/udp-request
    """
    from orchestrator.campaign.campaign import status
    from orchestrator.cli import headlines
    from reports.verdicts import of_expectations

    with refused():
        where = (
            directory
            if directory.is_dir() or not directory.exists()
            else Path(RESULTS) / _name(directory, {})
        )
        summary = status(where)
    if as_json:
        print_json(as_data(where, summary))
    else:
        say(f"{where}: {said(summary)}")
        answered = [line for line, _ in headlines.expectations(of_expectations(where))]
        for line in [*doubts(summary), *answered]:
            say(line)
    return status_of(summary, strict, where)


def engine_for(jobs: int, on: str | None, settings: Settings) -> Engine | None:
    """Returns the engine of `--jobs` and `--on`; None if the runs are executed one after another in this
    process. Raises CliError if the options or settings contradict each other, if `--on` is malformed, or if
    parallel labs in real time would share the machine's own kernel. Prints a note if there are fewer cores
    than parallel runs.
    """
    from orchestrator.campaign.engines.engine import Engine, EngineError, engine_of

    if on is not None and jobs > 1:
        raise CliError(f"--on {on} --jobs {jobs}: both set the number of parallel runs; leave out one", USAGE)
    try:
        engine = engine_of(on) if on is not None else Engine("local", jobs) if jobs > 1 else None
    except EngineError as error:
        raise CliError(str(error), USAGE) from error
    if engine and settings.kernel.startswith("ssh:"):
        raise CliError(f"--on {engine} --kernel {settings.kernel}: both name machines; leave out one", USAGE)
    if engine and engine.kind == "local":
        _check_side_by_side(engine.workers, f"--on {on}" if on else f"--jobs {jobs}", settings)
    return engine


def _check_side_by_side(runs: int, said: str, settings: Settings) -> None:
    from orchestrator.language.kernels import apart

    if runs > 1 and not apart(settings.kernel, settings.time):
        raise CliError(
            f"{said}: labs in real time under the machine's own kernel share its processors and "
            f"disturb one another's latency; use --time virtual, or leave out {said.split()[0]}",
            USAGE,
        )
    if runs > 1 and settings.time == "real":
        note(f"warning: {runs} labs in real time share the processors; look for warnings of a busy machine")
    if runs > (cores := len(os.sched_getaffinity(0))):
        note(f"warning: {said}, but this command may use {cores} cores; runs will wait for each other")


@contextmanager
def refused() -> Iterator[None]:
    """Turns errors of campaign directories, engines and run directories into CliError with status REFUSED."""
    from orchestrator.campaign.engines.engine import EngineError
    from orchestrator.campaign.journal import CampaignError
    from reports.errors import RunDirectoryError

    try:
        yield
    except (CampaignError, EngineError, RunDirectoryError) as error:
        raise CliError(str(error), REFUSED) from error


def _begun(
    directory: Path, parameters: dict[str, str], seed: int | None, fail_if: tuple[str, ...]
) -> tuple[Any, Path]:
    from orchestrator.campaign.journal import CampaignError, read_campaign
    from orchestrator.campaign.settings import Settings

    kept = read_campaign(directory)
    if missing := [name for name in ("file", "parameters", "kernel", "lab") if name not in kept]:
        raise CampaignError(
            f"{directory / 'campaign.json'}: was changed: has no {missing[0]}; undo the change, or name the "
            "campaign's file"
        )
    settings = Settings(
        Path(kept["file"]),
        parameters or kept["parameters"],
        kept["kernel"],
        kept["lab"],
        kept.get("time", "real"),
        kept.get("seed") if seed is None else seed,
        fail_if or tuple(kept.get("fail_if", ())),
    )
    return settings, directory


def _insist_same(kept: dict[str, str | None], directory: Path) -> None:
    """Refuses options of the command line that differ from those with which the campaign began, because its
    runs would not be comparable. `kept` has the values by parameter of the command.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in kept and context.params[name] != kept[name]:
            began = f"{parameter.opts[0]} {kept[name]}" if kept[name] else f"no {parameter.opts[0]}"
            raise CliError(
                f"{directory}: {parameter.opts[0]} {context.params[name]}: this campaign began with {began}, "
                "and all its runs have the same; leave the option out, or begin a new campaign with --out"
            )


def _name(file: Path, parameters: dict[str, str]) -> str:
    from orchestrator.topology import load_campaign

    return load_campaign(file, parameters).name


def said(summary: Summary) -> str:
    """Returns the state of a campaign as text, such as `8 of 10 runs complete, 2 left, about 40 s`."""
    from orchestrator.cli.progress import duration

    parts = [f"{summary.complete} of {summary.cells} runs complete"]
    parts += [f"{len(summary.suspect)} of them suspect"] if summary.suspect else []
    aside = sum(map(len, summary.set_aside.values()))
    parts += [f"{aside} suspect run{'s' if aside > 1 else ''} set aside"] if aside else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    if summary.left:
        time_left = f", about {duration(summary.left_s)}" if summary.left_s is not None else ""
        parts.append(f"{summary.left} left{time_left}")
    return ", ".join(parts)


def doubts(summary: Summary, printed: Collection[str] = ()) -> list[str]:
    """Returns a line for each failed and each suspect cell, failed ones first; MOST_NAMED at most, then the
    number of further ones. Each line has the reason, except for cells in `printed`, whose reason was printed
    before.
    """
    found = [("failed", cell, why) for cell, why in summary.errors.items()]
    found += [("suspect", cell, why) for cell, why in summary.suspect.items()]
    lines = [f"  {state}: {cell}" + ("" if cell in printed else f": {why}") for state, cell, why in found]
    more = len(lines) - MOST_NAMED
    return lines[:MOST_NAMED] + ([f"  and {more} more; `--json` lists all"] if more > 0 else [])


def as_data(directory: Path, summary: Summary) -> dict[str, Any]:
    """Returns a campaign's state as JSON data for `--json`."""
    return {
        **asdict(summary),
        "directory": str(directory),
        "page": str(summary.page) if summary.page else None,
        "expectations": expectations(directory),
    }


def _known(directory: Path) -> list[str]:
    """Returns two lines: the number of settings whose interval is as narrow as `until` requires, and the
    names of the others. Empty for a campaign without `until`.
    """
    from orchestrator.campaign.journal import read_campaign
    from reports.enough import summed_up
    from reports.study import study_of_campaign

    return summed_up(study_of_campaign(directory)) if "until" in read_campaign(directory) else []


def _conclude(directory: Path, summary: Summary, printed: Collection[str]) -> None:
    from orchestrator.cli.headlines import show

    if summary.page is not None or expectations(directory):
        show(directory, summary.page)
        for line in _known(directory):
            note(line)
    note("\n".join([f"{directory}: {said(summary)}", *doubts(summary, printed)]))
    if summary.interrupted:
        note(f"`vnet campaign run {directory}` resumes it")


@campaign_command.command("dataset")
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
