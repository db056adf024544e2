"""Implements `vnet up`, which brings a lab up and leaves it running."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import DONE, FAILED, INTERRUPTED
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.run import introduction
from orchestrator.cli.topologies import lab_options, refuse_to_stay
from orchestrator.run.directories import Place


@click.command("up")
@lab_options
@json_option
def up_command(
    file: Path,
    parameters: dict[str, str],
    seed: int | None,
    kernel: str,
    time_mode: str,
    place: Place,
    lab: str | None,
    hosts: tuple[str, ...],
    allow_outside: tuple[str, ...],
    as_json: bool,
) -> int:
    """Bring the lab of FILE up and leave it running, for `exec`, `shell`, `link`, `set` and the like.

    \b
    Example:  vnet up topologies/pair.yaml
    """
    refuse_to_stay(time_mode, "up")
    from orchestrator.kernel.ahead import look_ahead

    look_ahead(kernel)
    from orchestrator.cli.progress import rising
    from orchestrator.cli.views import view
    from orchestrator.reservations.running import hand_over
    from orchestrator.run.prepare import Request, begin
    from orchestrator.run.run import bring_up

    request = Request(file, parameters, seed, kernel, lab, hosts=hosts, allow_outside=allow_outside)
    prepared, run_dir = begin(request, place)
    name = prepared.plan.lab
    note(introduction(prepared, run_dir))
    with view(rising(prepared.plan)) as shown:
        followed = bring_up(prepared, run_dir, shown)
    hand_over(name, prepared.state_dir)
    up, error = followed.last is not None, "; ".join(followed.errors) or None
    # the progress display has printed the lab's errors
    printed = "failed to come up" if shown.progress.errors else error
    if as_json:
        print_json({"lab": name, "up": up, "error": error, "run_dir": str(run_dir), "kernel": prepared.why})
    else:
        note(
            f"lab {name}: up; `vnet shell {name} NODE` looks in, `vnet down {name}` ends it"
            if up
            else f"lab {name}: {printed}"
        )
    if followed.interrupted:
        return INTERRUPTED
    return DONE if up else FAILED
