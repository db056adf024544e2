"""Implements `vnet exec`, which runs one command on one or several nodes of a running lab."""

from __future__ import annotations

import sys

import click

from orchestrator.cli import completing
from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.errors import DONE, FAILED, CliError
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.running import choose, connect, groups
from orchestrator.cli.sessions import Ended, Prefixer, attached, run_on


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("lab", shell_complete=completing.labs)
@click.argument("nodes", shell_complete=completing.nodes)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@json_option
def exec_command(lab: str, nodes: str, command: tuple[str, ...], as_json: bool) -> int:
    """Run COMMAND on NODES of a running lab.

    On one node, input, output and exit status are the command's own. On several, each line begins with the
    node's name, and the status is 0 only if it was 0 on all of them.

    \b
    Example:  vnet exec pair left -- ping -c 3 10.20.0.2
    """
    with connect(lab) as control:
        chosen = choose(nodes, groups(control))
        try:
            if len(chosen) == 1 and not as_json:
                return _single(control, chosen[0], command)
            return _many(control, chosen, command, as_json)
        except ControlError as error:
            raise CliError(str(error)) from error


def _single(control: Control, node: str, command: tuple[str, ...]) -> int:
    def output(stream: str, data: bytes) -> None:
        target = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
        target.write(data)
        target.flush()

    # The command does not read a terminal as standard input: keys typed there are for the next prompt.
    stdin = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
    return attached(control, node, command, stdin=stdin, output=output)


def _many(control: Control, nodes: list[str], command: tuple[str, ...], as_json: bool) -> int:
    width = max(map(len, nodes))
    out = Prefixer(say, width)
    ended = run_on(control, nodes, command, None if as_json else out)
    out.flush()
    failed = [one for one in ended if one.status != 0]
    if as_json:
        print_json([_json(one) for one in ended])
    else:
        _complain(failed, len(ended))
    return FAILED if failed else DONE


def _json(one: Ended) -> dict[str, object]:
    return {
        "node": one.node,
        "status": one.status,
        "error": one.error,
        "stdout": one.stdout.decode(errors="replace"),
        "stderr": one.stderr.decode(errors="replace"),
    }


def _complain(failed: list[Ended], total: int) -> None:
    for one in failed:
        note(f"{one.node}: {one.error or f'exit status {one.status}'}")
    if failed:
        note(f"{len(failed)} of {total} nodes failed")
