"""Implements `vnet plugins`, which lists plug-ins with their versions and origins."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.cli.errors import DONE, FAILED
from orchestrator.cli.output import console, json_option, note, print_json, table


@click.command("plugins")
@click.option("--own", is_flag=True, help="List vNET's own kinds, too.")
@json_option
def plugins_command(own: bool, as_json: bool) -> int:
    """List the kinds of software, queues, importers and papers that installed packages bring.

    The exit status is 1 if one of them cannot be used; the list ends with its error.

    \b
    Example:  vnet plugins
              vnet plugins --own --json
    """
    rows: list[dict[str, Any]] = []
    refused = []
    for registry in _registries():
        if own:
            rows += [_row(registry.group, name) for name in registry.own]
        for name, (offer, _kind) in registry.strangers.usable.items():
            rows.append(_row(registry.group, name, offer.package, offer.version, offer.target))
        refused += registry.strangers.refused
    if as_json:
        wrong = [
            {**_row(o.group, o.name, o.package, o.version, o.target), "error": one.error}
            for one in refused
            for o in (one.offer,)
        ]
        print_json({"plugins": rows, "refused": wrong})
        return FAILED if refused else DONE
    if rows:
        console().print(
            table(["group", "name", "package", "version", "origin"], [[*r.values()] for r in rows])
        )
    elif not refused:
        note("no plug-ins are installed; `vnet new plugin NAME` makes the package of one")
    for one in refused:
        note(str(one))
    return FAILED if refused else DONE


def _row(group: str, name: str, package: str = "vnet-testbed", version: str = "", origin: str = "") -> Any:
    row = {"group": group, "name": name, "package": package, "version": version, "origin": origin}
    return row if version else {**row, "version": _own_version(), "origin": "vNET"}


def _own_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("vnet-testbed")
    except metadata.PackageNotFoundError:
        return "not installed"


def _registries() -> list[Any]:
    from orchestrator.cli.importing import IMPORTERS
    from orchestrator.queueing import QUEUE_KINDS
    from orchestrator.software.registry import KINDS
    from reports.papers import PAPERS

    return [KINDS, QUEUE_KINDS, IMPORTERS, PAPERS]
