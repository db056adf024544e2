"""Implements `vnet down`, which takes labs down, also those that have crashed."""

from __future__ import annotations

import click

from orchestrator.cli import completing
from orchestrator.cli.errors import DONE, FAILED, USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json


@click.command("down")
@click.argument("labs", nargs=-1, metavar="LAB...", shell_complete=completing.labs)
@click.option("--all", "everything", is_flag=True, help="All labs of this user.")
@json_option
def down_command(labs: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Take labs down and remove everything that belongs to them, also after a crash or kill -9.

    \b
    Example:  vnet down pair
    """
    if bool(labs) == everything:
        raise CliError("down: name the labs, or write --all", USAGE)
    from orchestrator.lab.cleanup import running_labs

    there = running_labs()
    asked = own(there) if everything else list(dict.fromkeys(labs))
    answers = [_down(lab, there) for lab in asked]
    if as_json:
        print_json(answers)
    elif not answers:
        note("no lab is running")
    return FAILED if any(answer["error"] for answer in answers) else DONE


def own(labs: list[str]) -> list[str]:
    """Returns those of the labs that were not started by another account."""
    from orchestrator.reservations import running

    return [lab for lab in labs if running.of_another(lab) is None]


def _down(lab: str, there: list[str]) -> dict[str, str | None]:
    error = None
    if lab not in there:
        running = ", ".join(there) or "none"
        error = f"lab {lab}: no such lab; labs: {running}"
    else:
        error = _destroy(lab)
    note(error or f"lab {lab}: down")
    return {"lab": lab, "error": error}


def _destroy(lab: str) -> str | None:
    from orchestrator.lab.state import state_root
    from orchestrator.reservations import running
    from orchestrator.run.teardown import TeardownError, take_down

    if (theirs := running.of_another(lab)) is not None:
        return f"{theirs}: only {theirs.account} or root ends it"
    try:
        take_down(lab)
    except TeardownError as error:
        return str(error)
    running.leave(lab, state_root() / lab)
    return None
