"""Implements `vnet remove`, which destroys nodes of a running lab."""

from __future__ import annotations

import click

from orchestrator.cli import completing
from orchestrator.cli.nodes import several
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.running import asked, by, choose, connect, groups


@click.command("remove")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("nodes", shell_complete=completing.nodes)
@json_option
def remove_command(lab: str, nodes: str, as_json: bool) -> None:
    """Destroy NODES of a running lab with their programs and interfaces.

    \b
    Example:  vnet remove field 'client[11-20]'
    """
    with connect(lab) as control:
        chosen = choose(nodes, groups(control))
        asked(control, "remove", nodes=chosen, by=by())
    if as_json:
        print_json({"lab": lab, "removed": chosen})
    else:
        note(f"removed {several(chosen)}")
