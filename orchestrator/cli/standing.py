"""Implements `vnet continue` and `vnet step`, which move the clock of a lab in virtual time that stands."""

from __future__ import annotations

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.quantities import DURATION
from orchestrator.cli.running import asked, connect


@click.command("continue")
@click.argument("lab", shell_complete=completing.labs)
@json_option
def continue_command(lab: str, as_json: bool) -> None:
    """Let the clock of a lab that stands (`vnet run --pause-at`) move on, to its next pause or to its end.

    \b
    Example:  vnet continue pair
    """
    with connect(lab) as control:
        answer = payload(asked(control, "continue"))
    if as_json:
        print_json(answer)
    else:
        note(f"lab {lab}: goes on from {answer['at']}")


@click.command("step")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("length", type=DURATION, metavar="DURATION")
@json_option
def step_command(lab: str, length: int, as_json: bool) -> None:
    """Let the clock of a lab that stands move by DURATION of the lab's time, and stand again.

    \b
    Example:  vnet step pair 10ms
    """
    with connect(lab) as control:
        answer = payload(asked(control, "step", ns=length))
    if as_json:
        print_json(answer)
    else:
        seconds = answer["since_start_ns"] / 1e9
        note(f"lab {lab}: stands at {answer['at']}, {seconds:.6f} s after the start of its clock")
