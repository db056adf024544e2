"""Implements `vnet fork`, which runs a run in virtual time again up to a moment, and then differently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import FAILED, USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.topologies import place_options
from orchestrator.run.directories import Place

if TYPE_CHECKING:
    from orchestrator.run.run import Outcome
    from orchestrator.verify.fork import Equality


@click.command("fork")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--at", "moment", required=True, metavar="MOMENT", help='"hold + 12 s", or an event\'s label.')
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="YAML",
    help="An event of the timeline, at MOMENT unless it has its own `at`; may be repeated.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of links and programs from MOMENT on.")
@click.option("--raw", is_flag=True, help="Only measure: `vnet report DIR` makes tables and page.")
@place_options("LAB/TIME")
@json_option
def fork_command(
    directory: Path,
    moment: str,
    events: tuple[str, ...],
    seed: int | None,
    raw: bool,
    place: Place,
    as_json: bool,
) -> int:
    """Run the run in DIRECTORY again up to MOMENT, and from there on with other events or seed.

    The new run starts from the beginning, which repetition makes exact; packets and arrivals before MOMENT
    are compared, and exit status 1 says that they differ.

    \b
    Example:  vnet fork results/pair/20260131T120000 --at 'hold + 2 s' --event '{link-down: [wan]}'
    """
    from orchestrator.cli.progress import planned
    from orchestrator.cli.run import as_data, conclusion, introduction, status_of
    from orchestrator.cli.views import view
    from orchestrator.run.run import execute
    from orchestrator.verify.fork import ForkError, equal_before, forked, record
    from orchestrator.verify.verify import VerifyError, again, recorded

    try:
        known = recorded(directory)
        plan, at_ns = forked(directory, moment, events, seed)
        prepared = again(directory, known, plan)
    except (VerifyError, ForkError) as error:
        raise CliError(str(error), USAGE if isinstance(error, ForkError) else FAILED) from error
    run_dir = place.run_dir(plan.lab)
    note(introduction(prepared, run_dir))
    with view(planned(plan, "virtual", "teardown" if raw else "report")) as shown:
        outcome = execute(prepared, run_dir, shown, page=not raw, tables=not raw)
    if outcome.state != "complete":
        note(conclusion(outcome, False, plan.lab, shown.progress))
        return status_of(outcome, False)
    found = equal_before(directory, run_dir, at_ns)
    told = {"at": moment, "events": list(events), "seed": seed}
    record(directory.resolve(), run_dir, at_ns, told, found)
    if as_json:
        from dataclasses import asdict

        print_json({**as_data(outcome), "before": asdict(found)})
    else:
        _say(found, outcome, moment)
    return FAILED if found.first is not None else status_of(outcome, False)


def _say(found: Equality, outcome: Outcome, moment: str) -> None:
    if found.first is not None:
        one = found.first
        say(f"differs before {moment}, so it is no fork of the run: {one.file}, {one.where}")
        say(f"  was   {one.before}\n  fork  {one.again}")
    elif not (found.packets or found.arrivals):
        say(f"cannot tell whether it is equal before {moment}: it has no packets and no arrivals until then")
    else:
        say(f"equal before {moment}: {found.packets} packets, {found.arrivals} arrivals")
    say(f"fork: {outcome.page or outcome.run_dir}")
