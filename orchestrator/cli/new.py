"""Implements `vnet new`, which writes a first topology file from options or from answers to questions, or the
package of a plug-in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import note
from vnet.accounting import FILES, helper

TRAFFIC = click.Choice(["request", "transfer", "ping"])


@click.group("new", invoke_without_command=True)
@click.option("--name", help="Name of the experiment and of the file.")
@click.option("--traffic", type=TRAFFIC, help="Traffic over the network.")
@click.option("--clients", type=click.IntRange(1, 500), help="Number of clients of the server.")
@click.option(
    "--network",
    metavar="DELAY|PROFILE",
    help='Network between them: a one-way delay such as "20 ms", or a profile.',
)
@click.option(
    "--service", metavar="COMMAND", help="Command of an HTTP service of your own; it takes traffic's place."
)
@click.option("--port", type=click.IntRange(1, 65535), help="TCP port of the service, by default 80.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here; by default NAME.yaml.")
@click.pass_context
def new_command(
    context: click.Context,
    name: str | None,
    traffic: str | None,
    clients: int | None,
    network: str | None,
    service: str | None,
    port: int | None,
    output: Path | None,
) -> None:
    """Write a first topology: clients, a server, the network between them. Asks for missing options.

    With --service it asks nothing: the server is your program, clients send HTTP requests over a bad network,
    and expectations judge their times.

    \b
    Example:  vnet new
              vnet new --name field --traffic request --clients 10 --network lte
              vnet new --service "nginx -g 'daemon off;'"
              vnet new --service "python3 -m http.server 8000" --port 8000 --clients 20
              vnet new plugin line-echo
              vnet new accounting go
    """
    if context.invoked_subcommand is not None:
        if given := [key for key, value in context.params.items() if value is not None]:
            rule = f"is for topologies, not for `vnet new {context.invoked_subcommand}`"
            raise CliError(f"--{given[0]}: {rule}", USAGE)
        return
    from orchestrator.plan.build import make_plan
    from orchestrator.topology.loading import parse

    if service is not None:
        if traffic is not None:
            raise CliError("--traffic: does not go with --service; leave one of them out", USAGE)
        name, text = _service(name, service, port, clients, network)
    elif port is not None:
        raise CliError("--port: is the service's; write --service COMMAND, or leave it out", USAGE)
    else:
        name, text = _first(name, traffic, clients, network)
    file = output or Path(f"{name}.yaml")
    make_plan(parse(str(file), text.encode()))
    write_new(file, text)
    note(f"{file}: written; `vnet run {file}` runs it, `vnet explain KEY` explains its keys")


@new_command.command("plugin")
@click.argument("name")
def plugin_command(name: str) -> None:
    """Write a package of a plug-in: the kind of software NAME, a program, an example and a test.

    \b
    Example:  vnet new plugin line-echo
              pip install ./vnet-line-echo
    """
    from orchestrator.software.new_plugin import PluginNameError, package_files, package_of

    try:
        files = package_files(name)
    except PluginNameError as error:
        raise CliError(f"{name}: {error}", USAGE) from None
    directory = Path(package_of(name))
    try:
        directory.mkdir()
    except FileExistsError:
        raise CliError(f"{directory}: exists already; choose another name or directory", USAGE) from None
    except OSError as error:
        raise CliError(f"{directory}: cannot be made: {error.strerror}; choose another directory") from error
    for path, text in files.items():
        (directory / path).parent.mkdir(exist_ok=True)
        write_new(directory / path, text)
    note(f"{directory}: written; `pip install ./{directory}` installs it, then `vnet plugins` lists it")


@new_command.command("accounting")
@click.argument("language", type=click.Choice(sorted(FILES)))
def accounting_command(language: str) -> None:
    """Write the file with which a program in LANGUAGE accounts for its own messages (docs/accounting.md).

    \b
    Example:  vnet new accounting go
    """
    source = helper(language)
    write_new(Path(source.name), source.read_text(encoding="utf-8"))
    note(f"{source.name}: written; its first lines show how a program uses it")


def _service(
    name: str | None, command: str, port: int | None, clients: int | None, network: str | None
) -> tuple[str, str]:
    """Returns the name and the text of the topology of a service."""
    from orchestrator.topology.first_service import NETWORK, PORT, Service, service_topology

    asked = Service(name or "service", command, port or PORT, clients or 5, network or NETWORK)
    return asked.name, service_topology(asked)


def _first(
    name: str | None, traffic: str | None, clients: int | None, network: str | None
) -> tuple[str, str]:
    """Returns the name and the text of the topology that options and answers describe."""
    from orchestrator.topology.first import PLAIN, First, first_topology

    asked = First(
        name=name or _ask("Name of the experiment", "first"),
        traffic=traffic or _ask("Traffic", "request", TRAFFIC),
        clients=clients or _ask("Clients", 5, click.IntRange(1, 500)),
        network=network or _ask("Network between them, a delay or a profile (`vnet profiles`)", PLAIN),
    )
    return asked.name, first_topology(asked)


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
