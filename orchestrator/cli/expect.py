"""Implements `vnet expect`, which judges conditions on a run or campaign that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import DONE, UNMET, UNTOLD, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, table
from orchestrator.cli.report import doubted

if TYPE_CHECKING:
    from contract.plan import Expectation, Plan
    from contract.verdict import Judged
    from reports.verdicts import Planned


@click.command("expect")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("conditions", nargs=-1, metavar="[CONDITION]...")
@click.option(
    "--fail-if",
    multiple=True,
    metavar="CONDITION",
    help="A condition that must not come true, as of `vnet run`.",
)
@json_option
def expect_command(
    directory: Path, conditions: tuple[str, ...], fail_if: tuple[str, ...], as_json: bool
) -> int:
    """Judge conditions on the run or campaign in DIRECTORY; without one, the expectations of its file.

    \b
    Example:  vnet expect results/pair/20260131T120000 'latency_p99[class=control] < 500 ms'
    """
    from contract.verdict import FAILS, OPEN
    from reports.damage import told
    from reports.judged import answer
    from reports.rundir import RunDirectoryError

    try:
        with told(directory):
            found = _judged(directory, conditions, fail_if)
            suspect = doubted(directory)
    except RunDirectoryError as error:
        raise CliError(str(error)) from error
    if not found:
        rule = "states no expectations; write a CONDITION"
        raise CliError(f"{directory}: {rule}, for example 'latency_p99[class=control] < 500 ms'", USAGE)
    if as_json:
        rows = [{"expectation": one.name, "verdict": one.verdict, "reason": one.reason} for one in found]
        print_json({"directory": str(directory), "suspect": bool(suspect), "expectations": rows})
    else:
        out = console()
        out.print(f"{answer(found)}.")
        out.print(
            table(
                ["expectation", "verdict", "reason"], [(one.name, one.verdict, one.reason) for one in found]
            )
        )
        for line in suspect:
            note(line)
    words = {one.verdict for one in found}
    return UNMET if FAILS in words else UNTOLD if OPEN in words else DONE


def _judged(directory: Path, conditions: tuple[str, ...], fail_if: tuple[str, ...]) -> list[Judged]:
    """Returns the verdicts on the conditions of both kinds. Without conditions, returns those on the
    expectations of the file.
    """
    from reports import verdicts
    from reports.study import study_of_campaign, study_of_run

    campaign = (directory / "campaign.json").exists()
    study = study_of_campaign(directory) if campaign else study_of_run(directory)
    return list(verdicts.on_conditions(study, _planned(conditions, fail_if)))


def _planned(conditions: tuple[str, ...], fail_if: tuple[str, ...]) -> Planned | None:
    """Returns a function that makes a plan's expectations from the conditions: `conditions` must hold,
    `fail_if` must not hold. None if there are no conditions.
    """
    if not conditions and not fail_if:
        return None
    from orchestrator.plan.expectations import plan_expectations
    from orchestrator.topology.conditions import expected, failing

    stated, negated = expected(conditions, "CONDITION"), failing(fail_if)

    def planned(plan: Plan) -> tuple[Expectation, ...]:
        return (*plan_expectations(stated, plan), *plan_expectations(negated, plan))

    return planned
