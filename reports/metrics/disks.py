"""Computes what groups of nodes read from and wrote to disks, and how many have their files in memory."""

from __future__ import annotations

import polars as pl

from reports.metrics.groups import groups
from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run

COLUMNS = {"disk_read": "read_bytes", "disk_written": "written_bytes"}
METHOD = {
    "processes": "sum of /proc/PID/io over the group's processes",
    "machines": "sum of libvirt's block statistics over the group's disks",
}


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
        method = METHOD["processes" if (rows["disk"] == "processes").all() else "machines"]
        for metric, column in COLUMNS.items():
            found.append(count(metric, of, int(rows[column].sum()) / 1e6, "MB", nodes, method))
        known = rows.filter(pl.col("memory").is_not_null())
        if known.height:
            inside = known.filter("memory")["node"].n_unique()
            found.append(
                count("disk_memory", of, inside, "nodes", nodes, "the file system of its own directory")
            )
    return found
