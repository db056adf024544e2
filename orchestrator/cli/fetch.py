"""Implements `vnet campaign fetch`, which copies captures of a campaign from the machines of its workers."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import REFUSED, USAGE, CliError
from orchestrator.cli.output import note, say


@click.command("fetch")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("cells", metavar="[CELL]...", nargs=-1)
@click.option("--on", "on", required=True, metavar="ENGINE", help="dask://HOST:PORT or tls://HOST:PORT.")
def fetch_command(directory: Path, cells: tuple[str, ...], on: str) -> None:
    """Copy captures of the campaign in DIRECTORY from the machines of its cells.

    Without CELL, copy all missing captures. The engine needs a worker on each of the machines.

    \b
    Example:  vnet campaign fetch results/udp-request --on tls://lab-1:8786
    """
    from orchestrator.campaign.engines.captures import away, fetch
    from orchestrator.campaign.engines.engine import EngineError, engine_of
    from orchestrator.campaign.journal import CampaignError
    from orchestrator.language.problem import closest

    try:
        lines = away(directory)
        known = [str(line["cell"]) for line in lines]
        if unknown := [cell for cell in cells if cell not in known]:
            remedy = closest(unknown[0], known, what="cells")
            raise CliError(f"{unknown[0]}: no cell with captures elsewhere; {remedy}", USAGE)
        wanted = [line for line in lines if not cells or line["cell"] in cells]
        if not wanted:
            say(f"{directory}: all captures are here")
            return
        missing = fetch(engine_of(on), directory, wanted, note)
    except (CampaignError, EngineError) as error:
        raise CliError(str(error), REFUSED) from error
    if missing:
        raise CliError("\n".join(missing), REFUSED)
    say(f"{directory}: captures of {len(wanted)} run{'s' if len(wanted) > 1 else ''} are here")
