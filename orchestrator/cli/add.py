"""Implements `vnet add`, which adds clones of a group's nodes to a running lab."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import completing
from orchestrator.cli.control import ControlError
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.running import asked, by, connect

if TYPE_CHECKING:
    from orchestrator.plan.clone import Clone


def new_nodes(run_dir: Path, now: dict[str, Any], group: str, count: int, *, idle: bool) -> list[Clone]:
    """Returns `count` clones of nodes of `group`, for a running lab; creates nothing. now: the nodes of the
    lab, from its answer to `inspect`. idle: True leaves out software that takes part in the scenario. Raises
    CliError if the group cannot be cloned.
    """
    from contract.rundir import read_plan
    from orchestrator.plan.clone import CloneError, clones

    plan = read_plan(run_dir)
    try:
        return clones(plan, now, group, count, idle=idle)
    except CloneError as error:
        raise CliError(str(error), USAGE) from error


def fields(clone: Clone) -> dict[str, Any]:
    """Returns a clone as the fields of the lab's `add` request."""
    return {
        "node": dataclasses.asdict(clone.node),
        "steps": [dataclasses.asdict(step) for step in clone.steps],
        "links": [dataclasses.asdict(link) for link in clone.links],
    }


@click.command("add")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("group", shell_complete=completing.groups)
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of clones."
)
@click.option("--idle", is_flag=True, help="Leave out the software that takes part in the scenario.")
@json_option
def add_command(lab: str, group: str, count: int, idle: bool, as_json: bool) -> None:
    """Clone nodes of GROUP into a running lab: same segments, limits, impairments and programs.

    The group of a single node has the node's name. Software with messages of its own is refused, or left out
    with --idle, since a running lab does not begin another scenario.

    \b
    Example:  vnet add pair left -n 10 --idle
    """
    with connect(lab) as control:
        run_dir = Path(asked(control, "status")["run_dir"])
        wanted = new_nodes(run_dir, asked(control, "inspect")["nodes"], group, count, idle=idle)
        added: list[dict[str, str]] = []
        for clone in wanted:
            try:
                control.call("add", **fields(clone), by=by())
            except ControlError as error:
                there = ", ".join(one["node"] for one in added) or "none"
                raise CliError(f"{clone.node.name}: {error} (added before it: {there})") from error
            added.append({"node": clone.node.name, "address": clone.node.interfaces[0].address})
    if as_json:
        print_json({"lab": lab, "added": added})
    else:
        for one in added:
            note(f"added {one['node']}  {one['address']}")
