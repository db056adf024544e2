"""Implements `vnet new`, which writes a first topology file from options or from answers to questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import note

TRAFFIC = click.Choice(["request", "transfer", "ping"])


@click.command("new")
@click.option("--name", help="Name of the experiment and of the file.")
@click.option("--traffic", type=TRAFFIC, help="Traffic over the network.")
@click.option("--clients", type=click.IntRange(1, 500), help="Number of clients of the server.")
@click.option(
    "--network",
    metavar="DELAY|PROFILE",
    help='Network between them: a one-way delay such as "20 ms", or a profile.',
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here; by default NAME.yaml.")
def new_command(
    name: str | None, traffic: str | None, clients: int | None, network: str | None, output: Path | None
) -> None:
    """Write a first topology: clients, a server, the network between them. Asks for missing options.

    \b
    Example:  vnet new
              vnet new --name field --traffic request --clients 10 --network lte
    """
    from orchestrator.plan.build import make_plan
    from orchestrator.topology.first import PLAIN, First, first_topology
    from orchestrator.topology.loading import parse

    asked = First(
        name=name or _ask("Name of the experiment", "first"),
        traffic=traffic or _ask("Traffic", "request", TRAFFIC),
        clients=clients or _ask("Clients", 5, click.IntRange(1, 500)),
        network=network or _ask("Network between them, a delay or a profile (`vnet profiles`)", PLAIN),
    )
    file = output or Path(f"{asked.name}.yaml")
    text = first_topology(asked)
    make_plan(parse(str(file), text.encode()))
    write_new(file, text)
    note(f"{file}: written; `vnet run {file}` runs it, `vnet explain KEY` explains its keys")


def write_new(file: Path, text: str) -> None:
    """Writes a new file in UTF-8; raises CliError if it exists or cannot be written."""
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise CliError(f"{file}: exists already; choose another -o", USAGE) from None
    except OSError as error:
        raise CliError(f"{file}: cannot be written: {error.strerror}; choose another -o") from error


def _ask(question: str, default: Any, kind: Any = None) -> Any:
    try:
        return click.prompt(question, default=default, type=kind, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            rule = "standard input ended at a question; `vnet new --help` names the options that answer it"
            raise CliError(f"{question}: {rule}", USAGE) from error
        raise
