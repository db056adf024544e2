"""Implements `vnet start`, `stop` and `restart` for nodes of a running lab, or for one software on them."""

from __future__ import annotations

from collections.abc import Callable

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.nodes import several
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.running import asked, by, choose, connect, groups

PAST = {"start": "started", "stop": "stopped", "restart": "restarted"}


def _command(action: str) -> click.Command:
    @click.argument("lab", shell_complete=completing.labs)
    @click.argument("nodes", shell_complete=completing.nodes)
    @click.option(
        "--software", metavar="NAME", help=f"{action.capitalize()} this software only, not the whole node."
    )
    @json_option
    def run(lab: str, nodes: str, software: str | None, as_json: bool) -> None:
        power(action, lab, nodes, software, as_json)

    run.__doc__ = (
        f"{action.capitalize()} NODES of a running lab, or one software on them.\n\n"
        "The programs of a stopped node end, and its links are down until it is started.\n\n"
        f"\b\nExample:  vnet {action} field 'client[1-20]'\n"
        f"          vnet {action} pair left --software ping"
    )
    made: Callable[..., click.Command] = click.command(action)
    return made(run)


def power(action: str, lab: str, nodes: str, software: str | None, as_json: bool) -> None:
    """Requests `start`, `stop` or `restart` of nodes, or of `software` on them, and prints the answer.

    Raises CliError with the lab's text if it refuses.
    """
    with connect(lab) as control:
        chosen = choose(nodes, groups(control))
        if software:
            answer = asked(control, "software", action=action, nodes=chosen, software=software, by=by())
        else:
            answer = asked(control, "node", action=action, nodes=chosen, by=by())
    if as_json:
        print_json(
            {"lab": lab, "action": action, "nodes": chosen, "software": software, "answer": payload(answer)}
        )
    else:
        note(f"{PAST[action]} {f'{software} on ' if software else ''}{several(chosen)}")


start_command = _command("start")
stop_command = _command("stop")
restart_command = _command("restart")
