"""Implements `vnet snapshot` and `vnet revert`, which save and restore virtual machines of a running lab."""

from __future__ import annotations

from collections.abc import Callable

import click

from orchestrator.cli import completing
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.running import asked, by, choose, connect, groups

TEXTS = {
    "snapshot": ("Save the memory and disk of NODES, virtual machines of a running lab, under NAME.",
                 "They pause meanwhile and continue afterwards. A snapshot ends with its lab.", "saved"),
    "revert": ("Restore NODES, virtual machines of a running lab, to the snapshot NAME.",
               "Everything that happened on them since then is lost, also for their peers' connections.",
               "restored"),
}  # fmt: skip


def _command(op: str) -> click.Command:
    first, more, past = TEXTS[op]

    @click.argument("lab", shell_complete=completing.labs)
    @click.argument("nodes", shell_complete=completing.nodes)
    @click.argument("name", default="snapshot")
    @json_option
    def run(lab: str, nodes: str, name: str, as_json: bool) -> None:
        with connect(lab) as control:
            chosen = choose(nodes, groups(control))
            asked(control, op, nodes=chosen, name=name, by=by())
        if as_json:
            print_json({"lab": lab, "action": op, "nodes": chosen, "name": name})
        else:
            note(f"{len(chosen)} virtual machine(s) {past}: {name}")

    run.__doc__ = f"{first}\n\n{more}\n\n\b\nExample:  vnet {op} machines server booted"
    made: Callable[..., click.Command] = click.command(op)
    return made(run)


snapshot_command = _command("snapshot")
revert_command = _command("revert")
