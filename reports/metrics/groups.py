"""Computes CPU, memory, traffic and disk I/O of each group of nodes, with the role of its nodes."""

from __future__ import annotations

import polars as pl

from reports.metrics.load import QUANTITIES, interval_ns, mean, within
from reports.metrics.metric import Metric, Of, count
from reports.roles import phases
from reports.rundir import Run

# A node's role is the first of these that its software has.
ORDER = ("broker", "server", "client", "utility", "router")
DISK_COLUMNS = {"disk_read": "read_bytes", "disk_written": "written_bytes"}
DISK_METHOD = {
    "processes": "sum of /proc/PID/io over the group's processes",
    "machines": "sum of libvirt's block statistics over the group's disks",
}


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


def disk_metrics(run: Run) -> list[Metric]:
    """Returns the sums over the nodes of each group that have counts; `n` is the number of these nodes."""
    table = run.table("disks")
    if table is None:
        return []
    found = []
    for (group, role), names in groups(run).items():
        rows = table.filter(pl.col("node").is_in(names))
        if not rows.height:
            continue
        of, nodes = Of(group=group, role=role or None), rows["node"].n_unique()
        method = DISK_METHOD["processes" if (rows["disk"] == "processes").all() else "machines"]
        for metric, column in DISK_COLUMNS.items():
            found.append(count(metric, of, int(rows[column].sum()) / 1e6, "MB", nodes, method))
        known = rows.filter(pl.col("memory").is_not_null())
        if known.height:
            inside = known.filter("memory")["node"].n_unique()
            found.append(
                count("disk_memory", of, inside, "nodes", nodes, "the file system of its own directory")
            )
    return found
