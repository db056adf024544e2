"""`vnet plan`: what would be made, with predictions; nothing is."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.output import document, json_option, say
from orchestrator.cli.topologies import file_argument, lab_option, parameters_option, refusals, seed_option


@click.command("plan")
@file_argument
@parameters_option
@seed_option
@lab_option
@click.option("--steps", is_flag=True, help="Also the texts for `ip -batch` and `tc -batch`, word for word.")
@json_option
def plan_command(
    file: Path, parameters: dict[str, str], seed: int | None, lab: str | None, steps: bool, as_json: bool
) -> None:
    """Show what FILE would become: nodes, addresses, links, events, and predictions. Nothing is made.

    \b
    Example:  vnet plan topologies/pair.yaml -p delay=50ms
    """
    from orchestrator.campaign.facts import insist_it_fits
    from orchestrator.model.codec import to_json
    from orchestrator.plan.build import make_plan
    from orchestrator.plan.render import render
    from orchestrator.topology import load

    with refusals():
        plan = make_plan(load(file, parameters), lab, seed)
        insist_it_fits(plan)
    if as_json:
        document(to_json(plan, indent=2))
    else:
        say(render(plan, steps=steps))
