"""`vnet ls`: the labs on this machine."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.cli.output import console, json_option, note, print_json, table
