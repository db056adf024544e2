"""Implements `vnet reduce`, which turns a pcap file into a table of packets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, table


@click.command("reduce")
@click.argument("pcap", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The table; by default beside the pcap."
)
@click.option(
    "--app", "apps", multiple=True, metavar="NAME=PORT[,PORT]",
    help="Ports of an application protocol, instead of its usual ones.",
)  # fmt: skip
@click.option(
    "--connections",
    type=click.Path(path_type=Path),
    help="Also write a table with one row for each TCP connection.",
)
@json_option
def reduce_command(
    pcap: Path, output: Path | None, apps: tuple[str, ...], connections: Path | None, as_json: bool
) -> None:
    """Reduce PCAP (pcap or pcapng) to a Parquet file with one row for each packet.

    \b
    Example:  vnet reduce capture.pcapng -o capture.parquet
    """
    from capture.errors import CaptureError
    from capture.pcap import reduce_pcap
    from contract import regular

    if pcap.exists() and (not pcap.is_file() or regular.hollow(pcap.stat())):
        raise CliError(f"{pcap}: is no regular file with packets; write it to a file first")
    made = output or pcap.with_suffix(".parquet")
    try:
        found = reduce_pcap(pcap, made, _ports(apps), connections)
    except CaptureError as error:
        raise CliError(str(error)) from error
    counts = dataclasses.asdict(found)
    if as_json:
        print_json({"pcap": str(pcap), "table": str(made), **counts})
        return
    rows = [(name.replace("_", " "), f"{value}") for name, value in counts.items() if value not in (None, {})]
    console().print(table(("what", "count"), [("table", str(made)), *rows], right=("count",)))
    for doubt in found.doubts():
        note(f"warning: {doubt}")


def _ports(texts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, ports = text.partition("=")
        try:
            found[name] = (*found.get(name, ()), *(int(port) for port in ports.split(",")))
        except ValueError as error:
            hint = "write NAME=PORT[,PORT], as in --app http=8000,8080"
            raise CliError(f"--app {text}: {hint}", USAGE) from error
    return found
