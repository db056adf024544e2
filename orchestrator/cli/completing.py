"""Completes arguments in the shell: running labs, their nodes and links, keys of topology files.

Names come from the plan of a lab, not from the lab, so completion is fast and disturbs no run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from contract.plan import Plan


def labs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of running labs."""
    from orchestrator.cli.running import names

    return _beginning(begun, names())


def nodes(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Nodes and groups of the lab in the command line; completes the last part of `a,b`."""
    found = _plan(context).nodes
    groups = [node.group for node in found]
    before, comma, last = begun.rpartition(",")
    names = dict.fromkeys(name for name in [*groups, *(node.name for node in found)])
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _beginning(last, list(names))]


def groups(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Groups of the lab in the command line."""
    return _beginning(begun, list(dict.fromkeys(node.group for node in _plan(context).nodes)))


def links(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Links of the lab in the command line."""
    return _beginning(begun, [link.name for link in _plan(context).links])


def topology_keys(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Keys of topology files; after a dot, the keys below that path."""
    from orchestrator.topology.explain import UnknownKeyError, explain, known

    before, dot, last = begun.rpartition(".")
    try:
        names = [key.path for entry in explain(before) for key in entry.keys] if before else known()
    except UnknownKeyError:
        return []
    return [CompletionItem(f"{before}{dot}{item.value}") for item in _beginning(last, names)]


def _plan(context: click.Context) -> Plan:
    """The plan of the lab in the command line; NO_PLAN if it cannot be read."""
    from contract.plan import NO_PLAN
    from contract.rundir import UnreadableError, read_plan
    from orchestrator.lab.state import read_lab, state_root

    run_dir = read_lab(state_root() / str(context.params.get("lab") or "")).get("run_dir")
    try:
        return read_plan(Path(str(run_dir)))
    except UnreadableError:
        return NO_PLAN


def _beginning(begun: str, names: list[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
