"""`vnet check`: all mistakes of a topology file at once."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import DONE, REFUSED
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.topologies import file_argument, load_plan, parameters_option, problems_of


@click.command("check")
@file_argument
@parameters_option
@json_option
def check_command(file: Path, parameters: dict[str, str], as_json: bool) -> int:
    """Check a topology or campaign file: names, references, units, addresses, combinations, and whether it fits.

    \b
    Example:  vnet check topologies/pair.yaml
    """
    problems, said = problems_of(file, parameters)
    if as_json:
        print_json({"ok": not problems, "problems": [vars_of(p) for p in problems]})
    elif problems:
        note("\n".join(str(problem) for problem in problems))
        note(f"{file}: {len(problems)} mistake{'s' if len(problems) > 1 else ''}")
    else:
        click.echo(f"{file}: good: {said}")
    return REFUSED if problems else DONE
