"""Implements `vnet packets`, which shows dissected packets of a run's capture points."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, print_json, say


@click.command("packets")
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--point", help="Capture point; not needed if there is only one.")
@click.option("-f", "--filter", "wanted", default="", help="Display filter in Wireshark's syntax.")
@click.option("-c", "--count", type=click.IntRange(1), help="Read at most this many packets of the capture.")
@click.option("--detail", is_flag=True, help="Every field of every packet.")
@json_option
def packets_command(
    run_dir: Path, point: str | None, wanted: str, count: int | None, detail: bool, as_json: bool
) -> None:
    """Show the packets of a capture point, dissected by tshark. With --json: a list of lines.

    \b
    Example:  vnet packets results/pair/20260131T120000 --filter 'tcp.analysis.retransmission'
    """
    from capture.errors import CaptureError
    from capture.packets import packets

    try:
        lines = packets(run_dir, point or _only(run_dir), wanted, detail=detail, count=count or 0)
        if as_json:
            print_json(list(lines))
            return
        for line in lines:
            say(line)
    except CaptureError as error:
        raise CliError(str(error)) from error


def _only(run_dir: Path) -> str:
    from capture.packets import points
    from contract.rundir import UnreadableError

    try:
        known = points(run_dir)
    except UnreadableError as error:
        raise CliError(f"{error}; name a run directory with its plan.json") from error
    if not known:
        raise CliError(
            f"{run_dir}: this run captured nothing; give its topology `captures:` and run it again"
        )
    if len(known) != 1:
        raise CliError(f"{run_dir}: its capture points: {', '.join(known)}; choose with --point", USAGE)
    return known[0]
