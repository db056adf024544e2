"""Implements `vnet schema`, which prints the JSON Schema of topology files."""

from __future__ import annotations

import click

from orchestrator.cli.output import print_json


@click.command("schema")
@click.option("--campaign", is_flag=True, help="The schema of files that hold only a campaign.")
def schema_command(campaign: bool) -> None:
    """Print the JSON Schema of topology files.

    \b
    Example:  vnet schema > topology.schema.json
    """
    from orchestrator.topology.schema import campaign_json_schema, json_schema

    print_json(campaign_json_schema() if campaign else json_schema())
