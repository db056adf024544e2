"""Implements `vnet graph`, which draws a topology file as SVG, PNG or PDF."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import UNABLE, CliError
from orchestrator.cli.output import document, note
from orchestrator.cli.topologies import file_argument, parameters_option


@click.command("graph")
@file_argument
@parameters_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write here, not SVG to standard output: FILE.svg, .png or .pdf.",
)
def graph_command(file: Path, parameters: dict[str, str], output: Path | None) -> None:
    """Draw FILE: segments, nodes, links with their impairments.

    \b
    Example:  vnet graph topologies/pair.yaml -o pair.svg
    """
    from orchestrator.plan.build import make_plan
    from orchestrator.plan.graph import FORMATS, GraphError, graph
    from orchestrator.topology import load

    form = output.suffix[1:].lower() if output else "svg"
    if form not in FORMATS:
        raise CliError(f"-o {output}: its ending names no format; end it in .svg, .png or .pdf")
    plan = make_plan(load(file, parameters))
    try:
        drawn = graph(plan, form)
    except GraphError as error:
        raise CliError(str(error), UNABLE) from error
    if output is None:
        document(drawn.decode())
        return
    try:
        output.write_bytes(drawn)
    except OSError as error:
        raise CliError(f"{output}: cannot be written: {error.strerror}; choose another -o") from error
    note(f"{output}: drawn")
