"""Completes arguments in the shell: running labs, their nodes, groups and links, keys of topology files.

Reads nodes and links from the plan of a lab and does not query the lab, so completion is fast and disturbs no
run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from contract.plan import Plan


def labs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the names of running labs that begin with `begun`."""
    from orchestrator.lab.cleanup import running_labs

    return _beginning(begun, running_labs())


def nodes(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the groups and nodes of the lab on the command line with which the end of a list `a,b` can be
    completed.
    """
    found = _plan(context).nodes
    groups = [node.group for node in found]
    before, comma, last = begun.rpartition(",")
    names = dict.fromkeys(name for name in [*groups, *(node.name for node in found)])
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _beginning(last, list(names))]


def groups(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the groups, of the lab in the command line, that begin with `begun`."""
    return _beginning(begun, list(dict.fromkeys(node.group for node in _plan(context).nodes)))


def links(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the links, of the lab in the command line, that begin with `begun`."""
    return _beginning(begun, [link.name for link in _plan(context).links])


def topology_keys(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the keys of topology files with which `begun` can be completed: after a dot, keys below that
    path; else all keys.
    """
    from orchestrator.topology.explain import UnknownKeyError, explain, known

    before, dot, last = begun.rpartition(".")
    try:
        names = [key.path for entry in explain(before) for key in entry.keys] if before else known()
    except UnknownKeyError:
        return []
    return [CompletionItem(f"{before}{dot}{item.value}") for item in _beginning(last, names)]


def _plan(context: click.Context) -> Plan:
    """Reads the plan of the lab that the command line names; returns NO_PLAN if it cannot be read."""
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
