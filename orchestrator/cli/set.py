"""Implements `vnet set`, which changes MTU, CPU limits and host names of nodes in a running lab."""

from __future__ import annotations

import re
from typing import Any

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.nodes import several
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.quantities import CPU
from orchestrator.cli.running import asked, by, choose, connect, groups

HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?")  # Linux allows 64 characters at most
Cpu = tuple[float | None, float | None]


@click.command("set")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("nodes", shell_complete=completing.nodes)
@click.option("--mtu", type=click.IntRange(68, 65535), help="MTU of the nodes' interfaces, in bytes.")
@click.option("--cpu-limit", type=CPU, help='Maximum CPU of a node: "500 MHz" or "0.5 cores".')
@click.option("--cpu-reserve", type=CPU, help="CPU that a node gets when the machine is busy.")
@click.option("--hostname", help="Host name of one node.")
@json_option
def set_command(
    lab: str,
    nodes: str,
    mtu: int | None,
    cpu_limit: Cpu | None,
    cpu_reserve: Cpu | None,
    hostname: str | None,
    as_json: bool,
) -> None:
    """Change NODES of a running lab; the new values are read back.

    \b
    Example:  vnet set field 'client[1-20]' --cpu-limit "200 MHz" --mtu 1280
    """
    changes = changed(mtu, cpu_limit, cpu_reserve, hostname)
    if not changes:
        raise CliError("set: nothing to change; give --mtu, --cpu-limit, --cpu-reserve or --hostname", USAGE)
    if hostname is not None and not HOST_NAME.fullmatch(hostname):
        rule = "is not a host name; use letters, digits and -, at most 64"
        raise CliError(f'--hostname: "{hostname}": {rule}', USAGE)
    with connect(lab) as control:
        chosen = choose(nodes, groups(control))
        if hostname and len(chosen) > 1:
            raise CliError(f"--hostname: {len(chosen)} nodes cannot share a host name; name one node", USAGE)
        answer = asked(control, "set", nodes=chosen, by=by(), **changes)
    if as_json:
        print_json({"lab": lab, "nodes": chosen, "changes": changes, "answer": payload(answer)})
    else:
        said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changes.items())
        note(f"{several(chosen)}: {said}")


def changed(
    mtu: int | None, cpu_limit: Cpu | None, cpu_reserve: Cpu | None, hostname: str | None
) -> dict[str, Any]:
    """Returns the fields of the lab's `set` request for the options that are not None; CPU values become MHz
    or cores.
    """
    changes: dict[str, Any] = {}
    for name, amount in (("cpu_limit", cpu_limit), ("cpu_reserve", cpu_reserve)):
        if amount is not None:
            mhz, cores = amount
            changes |= {f"{name}_mhz": mhz} if mhz is not None else {f"{name}_cores": cores}
    changes |= {"mtu": mtu} if mtu is not None else {}
    return changes | ({"hostname": hostname} if hostname is not None else {})
