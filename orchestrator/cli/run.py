"""Implements `vnet run`, which runs an experiment from its file to its report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.cli.errors import DONE, FAILED, INTERRUPTED, SUSPECT, UNMET, UNTOLD, USAGE, CliError
from orchestrator.cli.junit import judged, junit_option
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.quantities import DATE
from orchestrator.cli.topologies import lab_options, refuse_to_stay
from orchestrator.run.directories import Place

if TYPE_CHECKING:
    from orchestrator.cli.progress import Progress
    from orchestrator.run.prepare import Prepared
    from orchestrator.run.run import Outcome

F = TypeVar("F", bound=Callable[..., Any])


def strict_option(command: F) -> F:
    """Adds the option `--strict` to a command."""
    text = "Exit status 5 if a run is suspect, 8 if a verdict on a link or guarantee is `cannot tell`."
    return click.option("--strict", is_flag=True, help=text)(command)


def fail_if_option(command: F) -> F:
    """Adds the option `--fail-if CONDITION` to a command, which may be repeated."""
    text = (
        "End with status 7 if this holds: 'latency_p99[class=control] > 500 ms'; 8 if the run cannot show it."
    )
    return click.option("--fail-if", multiple=True, metavar="CONDITION", help=text)(command)


@click.command("run")
@lab_options
@click.option("--keep", is_flag=True, help="Leave the lab up afterwards, for a closer look.")
@fail_if_option
@click.option(
    "--clock",
    "clock_ns",
    type=DATE,
    help="Start of the clock of a lab in virtual time, instead of the file's.",
)
@click.option("--raw", is_flag=True, help="Only measure: `vnet report DIR` makes tables and page, anywhere.")
@junit_option
@strict_option
@json_option
def run_command(
    file: Path,
    parameters: dict[str, str],
    seed: int | None,
    kernel: str,
    time_mode: str,
    place: Place,
    lab: str | None,
    hosts: tuple[str, ...],
    allow_outside: tuple[str, ...],
    keep: bool,
    fail_if: tuple[str, ...],
    clock_ns: int | None,
    raw: bool,
    junit: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Run the experiment that FILE describes and report on it.

    Ctrl-C once: tear down, keep and report what was measured. Twice: end it hard.

    \b
    Example:  vnet run topologies/pair.yaml -p delay=50ms -p hold=30s
    """
    if keep:
        refuse_to_stay(time_mode, "--keep")
    for other, given in (("--junit", junit), ("--fail-if", fail_if)):
        if raw and given:
            raise CliError(f"--raw {other}: verdicts need the tables; leave out one of the two", USAGE)
    from orchestrator.kernel.ahead import look_ahead

    look_ahead(kernel if time_mode == "real" else "")
    from orchestrator.cli.headlines import show
    from orchestrator.cli.progress import planned
    from orchestrator.cli.views import view
    from orchestrator.reservations.running import hand_over, leave
    from orchestrator.run.prepare import Request, begin
    from orchestrator.run.run import execute

    if clock_ns is not None and time_mode != "virtual":
        raise CliError("--clock: in real time the machine's clock counts; add --time virtual", USAGE)
    request = Request(
        file,
        parameters,
        seed,
        kernel,
        lab,
        time_mode,
        hosts=hosts,
        fail_if=fail_if,
        clock_ns=clock_ns,
        allow_outside=allow_outside,
    )
    with judged(junit, file) if junit else nullcontext() as judge:
        prepared, run_dir = begin(request, place)
        note(introduction(prepared, run_dir))
        with view(planned(prepared.plan, time_mode, "teardown" if raw else "report")) as shown:
            outcome = execute(prepared, run_dir, shown, keep=keep, tables=not raw)
        (hand_over if keep else leave)(prepared.plan.lab, prepared.state_dir)
        if judge:
            judge(outcome.run_dir)
    if as_json:
        print_json(as_data(outcome))
    else:
        if outcome.page is not None:
            show(outcome.run_dir, outcome.page, failures=False)
        if said := conclusion(outcome, keep, prepared.plan.lab, shown.progress):
            note(said)
    return status_of(outcome, strict)


def introduction(prepared: Prepared, run_dir: Path) -> str:
    """Returns lines on lab, seed, parameters, kernel with the reason for it, and run directory."""
    plan = prepared.plan
    values = " ".join(f"{name}={value}" for name, value in plan.parameters.items())
    nodes = f"{len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}"
    lab = f"{plan.lab}: {nodes}, seed {plan.seed}{', ' + values if values else ''}"
    return f"{lab}\nkernel: {prepared.why}\nrun: {run_dir}"


def conclusion(outcome: Outcome, keep: bool, lab: str, shown: Progress) -> str:
    """Returns lines on the end of the run, with the warnings and errors that `shown` has not printed; "" if
    there is nothing to state. keep: True if the lab stays up.
    """
    from orchestrator.cli.progress import warning_text, warning_word

    texts = {warning_text(one): warning_word(one) for one in outcome.warnings}
    lines = [f"{word}: {text}" for text, word in texts.items() if text not in shown.warnings]
    if outcome.suspect:
        lines.append("suspect: look at the warnings before you trust these figures")
    if outcome.state != "complete":
        lines += [ending(outcome, shown.errors), f"files written so far: {outcome.run_dir}"]
    elif keep:
        lines.append(f"lab {lab} stays up: `vnet shell {lab} NODE` looks in, `vnet down {lab}` ends it")
    return "\n".join(lines)


def ending(outcome: Outcome, errors: tuple[str, ...]) -> str:
    """Returns state and reason of a run that is not complete; returns only the state if the reason is among
    the printed `errors`.
    """
    why = outcome.error or "stopped by the user"
    if errors and why == "; ".join(errors):
        return outcome.state
    return why if why.startswith(outcome.state) else f"{outcome.state}: {why}"


def status_of(outcome: Outcome, strict: bool) -> int:
    """Returns the exit status of a run: INTERRUPTED if the user stopped it, FAILED if it ended early for
    another reason, else `judged_status`. A complete run without a page (--raw) is DONE unless `strict`.
    """
    if outcome.state == "interrupted" and not outcome.watchdog:
        return INTERRUPTED
    if outcome.state != "complete":
        return FAILED
    judged = outcome.page is not None  # without a page (--raw), nothing was judged
    return (
        judged_status(outcome.run_dir, suspect=outcome.suspect, strict=strict) if judged or strict else DONE
    )


def judged_status(directory: Path, *, suspect: bool, strict: bool) -> int:
    """Returns the exit status of a complete run or campaign, the first of these that applies: SUSPECT with
    `strict` if it is suspect; UNMET if an expectation fails; UNTOLD if an expectation, or with `strict` a
    link or guarantee, is undecided; DONE.
    """
    from contract.rundir import VERDICTS
    from contract.verdict import FAILS, OPEN
    from reports.judged import unmet, untold
    from reports.verdicts import counted

    if strict and suspect:
        return SUSPECT
    found = counted(directory) if strict or (directory / VERDICTS).exists() else {}
    if unmet(found) == FAILS:
        return UNMET
    return UNTOLD if unmet(found) == OPEN or (strict and untold(found)) else DONE


def as_data(outcome: Outcome) -> dict[str, object]:
    """Returns a run's outcome as JSON data for `--json`."""
    return {
        "run_dir": str(outcome.run_dir),
        "state": outcome.state,
        "suspect": outcome.suspect,
        "error": outcome.error,
        "warnings": list(outcome.warnings),
        "page": str(outcome.page) if outcome.page else None,
        "expectations": expectations(outcome.run_dir),
    }


def expectations(directory: Path) -> list[dict[str, str]]:
    """Returns {expectation, verdict, reason} of each expectation of a run or campaign, for `--json`."""
    from reports.verdicts import of_expectations

    return [
        {"expectation": one.name, "verdict": one.verdict, "reason": one.reason}
        for one in of_expectations(directory)
    ]
