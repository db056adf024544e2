"""Implements `vnet import`, which makes a topology file from a file of another tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from contract.plugins import Registry
from orchestrator.cli.errors import DONE, CliError
from orchestrator.cli.new import write_new
from orchestrator.cli.output import document, note
from orchestrator.exchange.network import Importer, Network

# The last line of a file that an import could not complete; `vnet import` may replace a file that ends with
# it.
DRAFT = "# A draft of `vnet import`, which the next import replaces; remove this line to keep it.\n"


class _Importers(click.Group):
    """The importers of vNET, and those of plug-ins, which are loaded to list them or if a name is unknown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *IMPORTERS.all()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        for refused in IMPORTERS.strangers.refused:
            if refused.offer.name == cmd_name:
                raise CliError(str(refused))
        return _of_a_plugin(IMPORTERS[cmd_name]) if cmd_name in IMPORTERS else None


@click.group("import", cls=_Importers)
def import_command() -> None:
    """Make a topology file from a file of another tool."""


@import_command.command("graphml")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to standard output.")
@click.option("--hosts", is_flag=True, help="Add a machine behind each router, on its own segment.")
def graphml_command(file: Path, output: Path | None, hosts: bool) -> None:
    """Routers and links from a GraphML FILE of the Topology Zoo kind.

    \b
    Example:  vnet import graphml Geant2012.graphml --hosts -o geant.yaml
    """
    from orchestrator.topology.graphml import left_out, topology_text
    from orchestrator.topology.loading import parse, read_bytes

    content = read_bytes(file)
    text = topology_text(file.name, content, _lab_name(file), hosts=hosts)
    parse(str(output or file), text.encode())
    _listed(left_out(file.name, content), ())
    if output is None:
        document(text, nl=False)
    else:
        write_new(output, text)


F = TypeVar("F", bound=Callable[..., Any])


def writing_options(command: F) -> F:
    """Adds the options `-o` and `--run` to a command; all importers except graphml's have them."""
    command = click.option("--run", "then_run", is_flag=True, help="Run the topology immediately.")(command)
    output = click.Path(path_type=Path)
    return click.option("-o", "--output", type=output, help="Write here; NAME.yaml if not given.")(command)


file_argument = click.argument("file", type=click.Path(path_type=Path))


@import_command.command("containerlab")
@file_argument
@writing_options
@click.option("--stand-ins", is_flag=True, help="Replace vendors' systems by plain routers.")
def containerlab_command(file: Path, output: Path | None, then_run: bool, stand_ins: bool) -> int:
    """Nodes, links, addresses, routes and routers' configurations from a containerlab topology.

    Features without an equivalent are listed. A kind that cannot be imported is an error; nothing is written.

    \b
    Example:  vnet import containerlab routers.clab.yml
              vnet import containerlab routers.clab.yml --run
    """
    from orchestrator.exchange.containerlab import read

    network = read(file, stand_ins)
    return imported(network, output, then_run)


@import_command.command("mininet")
@file_argument
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@writing_options
@click.option("--stop-at-start", is_flag=True, help="End the script where its network starts.")
@click.option("--no-sandbox", is_flag=True, help="Run the script with your rights, outside the sandbox.")
def mininet_command(
    file: Path,
    arguments: tuple[str, ...],
    output: Path | None,
    then_run: bool,
    stop_at_start: bool,
    no_sandbox: bool,
) -> int:
    """Hosts, switches and links of a Mininet script.

    The script runs in a sandbox without network, and none of its shell commands runs. ARGUMENTS after -- are
    the script's own.

    \b
    Example:  vnet import mininet topology.py
              vnet import mininet topology.py -- --hosts 4
    """
    from orchestrator.exchange.mininet import read

    network = read(file, arguments, stop_at_start, not no_sandbox)
    return imported(network, output, then_run)


@import_command.command("kathara")
@click.argument("lab", type=click.Path(path_type=Path))
@writing_options
def kathara_command(lab: Path, output: Path | None, then_run: bool) -> int:
    """Machines, networks, addresses, routes and routing daemons of a Kathará LAB: its directory or lab.conf.

    \b
    Example:  vnet import kathara kathara-lab_rip
    """
    from orchestrator.exchange.kathara import read

    network = read(lab)
    return imported(network, output, then_run)


@import_command.command("core")
@file_argument
@writing_options
def core_command(file: Path, output: Path | None, then_run: bool) -> int:
    """Devices, networks and links with their options of a CORE scenario, an XML FILE.

    \b
    Example:  vnet import core sample1.xml
    """
    from orchestrator.exchange.core import read

    network = read(file)
    return imported(network, output, then_run)


@import_command.command("gns3")
@file_argument
@writing_options
@click.option("--stand-ins", is_flag=True, help="Replace vendors' systems by plain routers.")
def gns3_command(file: Path, output: Path | None, then_run: bool, stand_ins: bool) -> int:
    """Virtual PCs, containers, switches and links of a GNS3 project, its FILE.gns3.

    \b
    Example:  vnet import gns3 project.gns3
              vnet import gns3 project.gns3 --stand-ins
    """
    from orchestrator.exchange.gns3 import read

    network = read(file, stand_ins)
    return imported(network, output, then_run)


@import_command.command("netlab")
@file_argument
@writing_options
@click.option("--stand-ins", is_flag=True, help="Replace other devices by routers of this machine.")
def netlab_command(file: Path, output: Path | None, then_run: bool, stand_ins: bool) -> int:
    """Nodes, links and routing protocols of a netlab topology.

    \b
    Example:  vnet import netlab topology.yml
              vnet import netlab topology.yml --stand-ins --run
    """
    from orchestrator.exchange.netlab import read

    network = read(file, stand_ins)
    return imported(network, output, then_run)


@import_command.command("compose")
@file_argument
@writing_options
@click.option("--images", type=click.Path(path_type=Path), help="Directory with archives of the images.")
@click.option("--runtime", metavar="NAME", help="Save the images with this program: docker or podman.")
def compose_command(
    file: Path, output: Path | None, then_run: bool, images: Path | None, runtime: str | None
) -> int:
    """Services and networks of a Docker Compose FILE; images from archives, or from an installed runtime.

    \b
    Example:  vnet import compose compose.yaml --images archives
              vnet import compose compose.yaml --runtime podman
    """
    from orchestrator.exchange.compose import read

    network = read(file, images, runtime)
    return imported(network, output, then_run)


@import_command.command("mahimahi")
@file_argument
@writing_options
def mahimahi_command(file: Path, output: Path | None, then_run: bool) -> int:
    """The link that nested Mahimahi shells emulate; FILE is a script with the command.

    \b
    Example:  vnet import mahimahi run.sh
    """
    from orchestrator.exchange.mahimahi import read

    network = read(file)
    return imported(network, output, then_run)


def _of_a_plugin(importer: Importer) -> click.Command:
    def read_and_write(file: Path, output: Path | None, then_run: bool) -> int:
        return imported(importer.read(file), output, then_run)

    return click.command(importer.name, help=importer.title)(file_argument(writing_options(read_and_write)))


def _fault(name: str, importer: Importer) -> str:
    if name in import_command.commands:
        return f"vNET has its own importer {name!r}, which is used; rename the plug-in's"
    return (
        "" if importer.name == name else f"its importer is named {importer.name!r}; name the entry point so"
    )


IMPORTERS: Registry[Importer] = Registry("vnet.importers", {}, Importer, _fault)


def imported(network: Network, output: Path | None, then_run: bool) -> int:
    """Writes the topology of an imported network to `output` (default: NAME.yaml), lists the parts that are
    left out or changed, and runs it if `then_run`. Returns the exit status. Raises CliError if the file
    exists and is not a draft. Raises TopologyError if the network does not make a valid topology; that
    topology is then written as a draft.
    """
    from orchestrator.exchange.writing import write
    from orchestrator.language.problem import TopologyError

    file = output or Path(f"{network.name}.yaml")
    try:
        written = write(network, str(file))
    except TopologyError:
        _listed(network.left, network.changed)
        raise
    if _is_draft(file):
        file.unlink()
    write_new(file, written.text + (DRAFT if written.problems else ""))
    joined = len(network.wires) + len(network.lans) + len(network.lines)
    note(f"{file}: {len(network.machines)} nodes, {joined} links and segments from {network.tool}")
    _listed(network.left, written.changed)
    if written.problems:
        note(f"{file} is a draft: the next import replaces it, unless its last line is removed")
        raise TopologyError(written.problems)
    if not then_run:
        note(f"`vnet run {file}` runs it, `vnet up {file}` keeps it up")
        return DONE
    from orchestrator.cli.run import run_command

    status: int = run_command.main([str(file)], prog_name="vnet run", standalone_mode=False)
    return status


def _is_draft(file: Path) -> bool:
    return file.is_file() and file.read_bytes().endswith(DRAFT.encode())


def _listed(left: Iterable[str], changed: Iterable[str]) -> None:
    for line in left:
        note(f"  left out: {line}")
    for line in changed:
        note(f"  changed: {line}")


def _lab_name(file: Path) -> str:
    from orchestrator.topology.graphml import name_of

    return name_of(file.stem, set())
