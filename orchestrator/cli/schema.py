"""`vnet schema`: the JSON Schema of topology files."""

from __future__ import annotations

import click

from orchestrator.cli.output import print_json


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of topology files.

    \b
    Example:  vnet schema > topology.schema.json
    """
    from orchestrator.topology.schema import json_schema

    print_json(json_schema())
