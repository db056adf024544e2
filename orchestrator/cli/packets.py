"""Implements `vnet packets`, which shows dissected packets of a run's capture points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, print_json, say


@click.command("packets")
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--point", help="Capture point; not needed if there is only one.")
@click.option("-f", "--filter", "wanted", default="", help="Display filter in Wireshark's syntax.")
@click.option("-c", "--count", type=click.IntRange(1), help="Read at most this many packets of the capture.")
@click.option("--detail", is_flag=True, help="Every field of every packet.")
@click.option("--message", help="Only the packets that carry this message, FLOW:SEQ as in messages.parquet.")
@click.option("--deep", is_flag=True, help="Every field by its name in tshark; --count limits the packets.")
@json_option
def packets_command(
    run_dir: Path, point: str | None, wanted: str, count: int | None, detail: bool, message: str | None,
    deep: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show the packets of a capture point, dissected by tshark. With --json: a list of lines, with --deep of
    objects {number, time, layers}.

    \b
    Example:  vnet packets results/pair/20260131T120000 --filter 'tcp.analysis.retransmission'
              vnet packets results/pair/20260131T120000 --message client1.meter:12 --deep
    """
    from capture.deep import carrying
    from capture.deep import deep as look
    from capture.errors import CaptureError
    from capture.packets import packets

    try:
        if message is not None:
            carries = carrying(run_dir, message)
            wanted = f"({wanted}) && {carries}" if wanted else carries
        place = point or _only(run_dir)
        shown = packets(run_dir, place, wanted, detail=detail, count=count or 0)
        found = look(run_dir, place, wanted, count or 0) if deep else shown
        if as_json:
            print_json(list(found))
            return
        for packet in found:
            say("\n".join(_lines(packet)) if isinstance(packet, dict) else packet)
    except CaptureError as error:
        raise CliError(str(error)) from error


def _lines(packet: dict[str, Any]) -> Iterator[str]:
    """Yields a line with the packet's number and time, and one for each value of each field."""
    yield f"packet {packet['number']}, {packet['time']} s"
    for fields in packet["layers"].values():
        for name, values in fields.items():
            for value in values if isinstance(values, list) else [values]:
                yield f"  {name} = {value}"


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
