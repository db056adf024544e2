"""Computes drops, retransmissions and aborted connections in the nodes' network stacks, by group."""

from __future__ import annotations

import polars as pl

from reports.metrics.groups import groups
from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run

# metric -> the kernel counters that it sums, with their names from networking/snmp_counter.rst
COUNTERS = {
    "stack_buffer_full": ("UdpRcvbufErrors", "TcpExtTCPRcvQDrop", "TcpExtTCPBacklogDrop"),
    "stack_send_full": ("UdpSndbufErrors",),
    "stack_fragments_lost": ("IpReasmFails", "Ip6ReasmFails"),
    "stack_nobody": ("UdpNoPorts",),
    "stack_unroutable": ("IpOutNoRoutes", "Ip6OutNoRoutes"),
    "stack_sent_again": ("TcpRetransSegs",),
    "stack_timeouts": ("TcpExtTCPTimeouts",),
    "stack_gave_up": ("TcpExtTCPAbortOnTimeout",),
    "stack_not_accepted": ("TcpExtListenDrops",),
}


def stack_metrics(run: Run) -> list[Metric]:
    """Returns the sum of each metric's kernel counters over the nodes of each group; `n` is the number of
    nodes that have them. Metrics without a counter in a group are left out; empty without counters.
    """
    table = run.table("stacks")
    if table is None:
        return []
    found = []
    for (group, role), names in groups(run).items():
        of, rows = Of(group=group, role=role or None), table.filter(pl.col("node").is_in(names))
        for metric, counters in COUNTERS.items():
            ours = rows.filter(pl.col("counter").is_in(counters))
            if ours.height:
                total, nodes = int(ours["value"].sum()), ours["node"].n_unique()
                found.append(count(metric, of, total, "events", nodes, f"sum of {', '.join(counters)}"))
    return found
