"""Implements `vnet export`, which writes a topology as a file of another tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import REFUSED, CliError
from orchestrator.cli.new import write_new
from orchestrator.cli.output import document, note
from orchestrator.cli.topologies import file_argument, parameters_option

if TYPE_CHECKING:
    from contract.plan import Plan
    from orchestrator.exchange.outgoing import Exported

output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write here, not to standard output."
)


@click.group("export")
def export_command() -> None:
    """Write a topology as a file of another tool; features without an equivalent are listed."""


@export_command.command("containerlab")
@file_argument
@parameters_option
@output_option
@click.option("--image", help="Image of the containers; by default one with the usual network tools.")
def containerlab_command(
    file: Path, parameters: dict[str, str], output: Path | None, image: str | None
) -> None:
    """A containerlab topology: nodes of kind linux, bridges, links; impairments as commands in it.

    \b
    Example:  vnet export containerlab topologies/ring.yaml -o ring.clab.yml
    """
    from orchestrator.exchange.to_containerlab import IMAGE, export

    _exported(file, parameters, output, lambda plan: export(plan, image or IMAGE))


@export_command.command("mininet")
@file_argument
@parameters_option
@output_option
def mininet_command(file: Path, parameters: dict[str, str], output: Path | None) -> None:
    """A Python script for Mininet.

    \b
    Example:  vnet export mininet topologies/ring.yaml -o ring.py
    """
    from orchestrator.exchange.to_mininet import export

    _exported(file, parameters, output, export)


@export_command.command("dot")
@file_argument
@parameters_option
@output_option
def dot_command(file: Path, parameters: dict[str, str], output: Path | None) -> None:
    """The drawing of `vnet graph` in the language of Graphviz.

    \b
    Example:  vnet export dot topologies/ring.yaml -o ring.dot
    """
    from orchestrator.exchange.outgoing import Exported
    from orchestrator.plan.graph import dot

    _exported(file, parameters, output, lambda plan: Exported(dot(plan), ()))


def _exported(
    file: Path, parameters: dict[str, str], output: Path | None, export: Callable[[Plan], Exported]
) -> None:
    from orchestrator.exchange.outgoing import ExportError
    from orchestrator.plan.build import make_plan
    from orchestrator.topology import load

    try:
        written = export(make_plan(load(file, parameters)))
    except ExportError as error:
        raise CliError(f"{file}: {error}", REFUSED) from error
    if output is None:
        document(written.text, nl=False)
    else:
        write_new(output, written.text)
    for line in written.left:
        note(f"  left out: {line}")
