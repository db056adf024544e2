"""Computes CPU, memory and traffic of each group of nodes, with the role of its nodes."""

from __future__ import annotations

import polars as pl

from reports.metrics.load import QUANTITIES, interval_ns, mean, within
from reports.metrics.metric import Metric, Of, count
from reports.roles import phases
from reports.rundir import Run

# A node's role is the first of these that its software has.
ORDER = ("broker", "server", "client", "utility", "router")


def groups(run: Run) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns the names of the nodes by (group, role), in the order of the plan. A node without a group is a
    group of its own name; a node without a role of ORDER has the role "".
    """
    found: dict[tuple[str, str], list[str]] = {}
    for node in run.plan.nodes:
        does = {s.role for s in node.software}
        role = next((one for one in ORDER if one in does), "")
        found.setdefault((node.group or node.name, role), []).append(node.name)
    return {key: tuple(names) for key, names in found.items()}


def group_metrics(run: Run) -> list[Metric]:
    """Returns the number of nodes and the mean of each sampled quantity over the hold for each group and
    role; empty without node samples or hold.

    The interval is over time for one node, over the nodes for several.
    """
    table, hold = run.table("nodes"), phases(run).get("hold")
    if table is None or hold is None:
        return []
    held = within(table, hold, interval_ns(table, "node"))
    found: list[Metric] = []
    for (group, role), names in groups(run).items():
        of, rows = Of(group=group, role=role or None), held.filter(pl.col("node").is_in(names))
        found.append(count("nodes", of, len(names), "nodes", len(names), "as planned"))
        for column, (name, unit, factor) in QUANTITIES.items():
            if column in rows.columns and rows.get_column(column).drop_nulls().len():
                found.append(mean(rows, column, name, of, unit, factor))
    return found
