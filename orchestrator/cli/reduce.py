"""`vnet reduce`: a pcap from anywhere to a table of packets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from orchestrator.cli.errors import CliError
from orchestrator.cli.output import console, json_option, print_json, table


@click.command("reduce")
@click.argument("pcap", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The table; beside the pcap if not given."
)
@click.option("--mqtt-port", "ports", multiple=True, type=click.IntRange(1, 65535), help="1883 if not given.")
@json_option
def reduce_command(pcap: Path, output: Path | None, ports: tuple[int, ...], as_json: bool) -> None:
    """Reduce PCAP to a Parquet file with one row a packet.

    \b
    Example:  vnet reduce capture.pcap -o capture.parquet
    """
    from capture.errors import CaptureError
    from capture.pcap import MQTT_PORT, reduce_pcap

    made = output or pcap.with_suffix(".parquet")
    try:
        counts = dataclasses.asdict(reduce_pcap(pcap, made, ports or (MQTT_PORT,)))
    except CaptureError as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json({"pcap": str(pcap), "table": str(made), **counts})
        return
    rows = [(name.replace("_", " "), f"{value}") for name, value in counts.items() if value is not None]
    console().print(table(("what", "count"), [("table", str(made)), *rows], right=("count",)))
