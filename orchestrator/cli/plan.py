"""Implements `vnet plan`, which prints the plan of a file and creates nothing: nodes, links, events and
predictions, delay bounds, or the runs of a campaign.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.output import document, json_option, note, print_json, say
from orchestrator.cli.plan_campaign import insist_on_plain, is_campaign, show_campaign
from orchestrator.cli.topologies import (
    file_argument,
    fits_in,
    hosts_option,
    lab_option,
    parameters_option,
    seed_option,
    time_option,
)

if TYPE_CHECKING:
    from contract.plan import Plan


@click.command("plan")
@file_argument
@parameters_option
@seed_option
@lab_option
@time_option
@hosts_option
@click.option("--assume-nics", is_flag=True, help="As if this machine had the NICs that FILE names.")
@click.option("--steps", is_flag=True, help="Also the exact input of `ip -batch` and `tc -batch`.")
@click.option("--bounds", is_flag=True, help="Show only the worst delay of each flow, by network calculus.")
@click.option(
    "--machine-rate", metavar="RATE", help="With --bounds: rate of links without one, such as '1 Gbit/s'."
)
@click.option(
    "--node-time",
    metavar="TIME",
    help="With --bounds: longest time in which a node sends or receives a message.",
)
@click.option(
    "--campaign", is_flag=True, help="List the runs of FILE's campaign, with their expected time, instead."
)
@json_option
def plan_command(
    file: Path,
    parameters: dict[str, str],
    seed: int | None,
    lab: str | None,
    time_mode: str,
    hosts: tuple[str, ...],
    assume_nics: bool,
    steps: bool,
    bounds: bool,
    machine_rate: str | None,
    node_time: str | None,
    campaign: bool,
    as_json: bool,
) -> None:
    """Show the nodes, addresses, links, events and predictions of FILE, without making anything.

    For a file that holds only a campaign, list the campaign's runs.

    \b
    Example:  vnet plan topologies/pair.yaml -p delay=50ms
              vnet plan topologies/ring.yaml --hosts all
              vnet plan topologies/dumbbell.yaml --campaign
              vnet plan topologies/nic-qualification.yaml -p nics="eno1 eno2" --assume-nics
    """
    if campaign or is_campaign(file):
        insist_on_plain(
            file, {"--hosts": hosts, "--assume-nics": assume_nics, "--steps": steps, "--bounds": bounds}
        )
        show_campaign(file, parameters, seed, lab, time_mode, as_json)
        return
    from contract.codec import to_json
    from orchestrator.cli.check import of_calibration
    from orchestrator.plan.build import make_plan
    from orchestrator.plan.nics import nic_uses
    from orchestrator.plan.render import render
    from orchestrator.topology import load

    plan = make_plan(load(file, parameters, hosts), lab, seed)
    fits_in(time_mode, assume_nics)(plan)
    if bounds:
        _bounds(
            plan,
            _quantity("--machine-rate", "rate", machine_rate),
            _quantity("--node-time", "duration", node_time),
            as_json,
        )
    elif as_json:
        document(to_json(plan, indent=2))
    else:
        say(render(plan, steps=steps))
        for use in nic_uses(plan) if assume_nics else ():
            note(f'assumed: {use.place}: NIC "{use.asked}"')
        for one in of_calibration(plan, time_mode):
            note(f"warning: {one.place}: {one.text}; {one.remedy}")


def _quantity(option: str, kind: str, text: str | None) -> int:
    from orchestrator.language.units import QUANTITIES, UnitError, whole

    if text is None:
        return 0
    try:
        return whole(QUANTITIES[kind], text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _bounds(plan: Plan, machine_bps: int, node_ns: int, as_json: bool) -> None:
    from orchestrator.plan.bounds.render import as_document, render_bounds
    from orchestrator.plan.bounds.report import bounds_of

    found = bounds_of(plan, machine_bps, node_ns)
    if as_json:
        print_json(as_document(found))
    else:
        say(render_bounds(found))
