"""`vnet import`: topologies made from files of other kinds."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.output import document
from orchestrator.cli.topologies import refusals


@click.group("import")
def import_command() -> None:
    """Make a topology file from a file of another kind."""


@import_command.command("graphml")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to standard output.")
@click.option("--hosts", is_flag=True, help="With a machine behind each router, on a segment of its own.")
def graphml_command(file: Path, output: Path | None, hosts: bool) -> None:
    """Routers and links from a GraphML FILE of the Topology Zoo kind.

    \b
    Example:  vnet import graphml Geant2012.graphml --hosts -o geant.yaml
    """
    from orchestrator.topology.graphml import topology_text
    from orchestrator.topology.loading import parse, read_bytes

    with refusals():
        text = topology_text(file.name, read_bytes(file), _lab_name(file), hosts=hosts)
        parse(str(output or file), text.encode())
    if output is None:
        document(text, nl=False)
    else:
        output.write_text(text)


def _lab_name(file: Path) -> str:
    from orchestrator.topology.graphml import name_of

    return name_of(file.stem, set())
