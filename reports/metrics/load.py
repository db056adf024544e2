"""Computes CPU, memory and traffic of nodes and the load of machines, as means over the hold."""

from __future__ import annotations

import polars as pl

from reports.metrics.metric import Metric, Of, metric
from reports.metrics.stats import batch_means, t_interval
from reports.roles import SECOND, Span, phases, roles
from reports.rundir import Run

# Column of nodes.parquet -> (metric, unit, factor). The table has rates in bit/s, and CPU time as a share of
# one core.
QUANTITIES = {
    "cpu_share": ("cpu", "% of a core", 100.0),
    "rx_bps": ("received", "kB/s", 1 / 8000),
    "tx_bps": ("sent", "kB/s", 1 / 8000),
    "memory_bytes": ("memory", "MB", 1e-6),
}


def within(table: pl.DataFrame, span: Span, interval_ns: int) -> pl.DataFrame:
    """Returns the rows whose whole sampling interval, which ends at t_ns, is in the span; it may begin a
    tenth of an interval before the span.
    """
    return table.filter(
        (pl.col("t_ns") - interval_ns >= span.start_ns - interval_ns // 10) & (pl.col("t_ns") <= span.end_ns)
    )


def interval_ns(table: pl.DataFrame, by: str) -> int:
    """Returns the sampling interval in ns: the median step of the series (by the column `by`) with most rows,
    or one second if it has a single row.
    """
    longest = table.get_column(by).mode().sort().item(0)
    found = table.filter(pl.col(by) == longest).get_column("t_ns").sort().diff().median()
    return int(found) if isinstance(found, int | float) and found > 0 else SECOND


def load_metrics(run: Run, only: tuple[str, ...] | None = None) -> list[Metric]:
    """Returns the means over the hold for each set of nodes (or those in `only`) and quantity, and for a
    single broker received minus sent if `only` is None; empty without node samples or hold.
    """
    table, hold = run.table("nodes"), phases(run).get("hold")
    if table is None or hold is None:
        return []
    held = within(table, hold, interval_ns(table, "node"))
    sets = roles(run).sets()
    found = [m for name, nodes in sets.items() if name in (only or sets) for m in _of_set(held, name, nodes)]
    return found + (_surplus(held, sets.get("broker", ())) if only is None else [])


def _of_set(held: pl.DataFrame, which: str, nodes: tuple[str, ...]) -> list[Metric]:
    rows = held.filter(pl.col("node").is_in(nodes))
    return [
        mean(rows, column, name, Of(nodes=which), unit, factor)
        for column, (name, unit, factor) in QUANTITIES.items()
        if column in rows.columns and rows.get_column(column).drop_nulls().len()
    ]


def _surplus(held: pl.DataFrame, brokers: tuple[str, ...]) -> list[Metric]:
    """Returns the mean of received minus sent over the samples of the only broker; empty with none or
    several.

    Both rates vary together, so this is more precise than the difference of the means.
    """
    rows = held.filter(pl.col("node").is_in(brokers)).sort("t_ns").drop_nulls(["rx_bps", "tx_bps"])
    if len(brokers) != 1 or rows.is_empty():
        return []
    values = (rows.get_column("rx_bps") - rows.get_column("tx_bps")).to_list()
    return [metric("received_minus_sent", Of(nodes="broker"), "kB/s", batch_means(values), 1 / 8000)]


def mean(rows: pl.DataFrame, column: str, name: str, of: Of, unit: str, factor: float) -> Metric:
    """Returns the mean of a column as a metric, times `factor`: of one node with an interval over batch means
    in time, of several nodes with a t interval over their means.
    """
    known = rows.drop_nulls(column).sort("t_ns")
    if known.get_column("node").n_unique() == 1:
        return metric(name, of, unit, batch_means(known.get_column(column).to_list()), factor)
    means = (
        known.group_by("node", maintain_order=True)
        .agg(pl.col(column).mean())
        .sort("node")
        .get_column(column)
        .to_list()
    )
    return metric(name, of, unit, t_interval(means, "node"), factor)


def host_metrics(run: Run) -> list[Metric]:
    """Returns the busy and steal shares over the hold of the lab's kernel, of the machine around it, or of
    each host; empty without samples or hold.

    In virtual time it returns only the busy share of the modelled core (`core_busy`), because no machine's
    load affects the lab.
    """
    table, hold = run.table("host"), phases(run).get("hold")
    if table is None or hold is None:
        return []
    held = within(table, hold, interval_ns(table, "where"))
    if run.virtual:
        shares = (
            held.filter(pl.col("where") == "lab").sort("t_ns").get_column("busy_share").drop_nulls().to_list()
        )
        of = Of(machine="model")
        return [metric("core_busy", of, "% of a core", batch_means(shares), 100.0)] if shares else []
    found = []
    places = held.get_column("where").unique().sort().to_list()
    # first the lab and the outer machine, then hosts in the order of their names
    for where in sorted(places, key=lambda name: {"lab": 0, "outer": 1}.get(name, 2)):
        rows = held.filter(pl.col("where") == where).sort("t_ns")
        for column, name in (("busy_share", "host_busy"), ("steal_share", "host_steal")):
            values = rows.get_column(column).drop_nulls().to_list()
            if values:
                found.append(metric(name, Of(machine=where), "% of the machine", batch_means(values), 100.0))
    return found


def node_means(run: Run) -> pl.DataFrame | None:
    """Returns the means of each node over the hold: node, group, then a column for each quantity with its
    unit; None without node samples or hold.
    """
    table, hold = run.table("nodes"), phases(run).get("hold")
    if table is None or hold is None:
        return None
    held = within(table, hold, interval_ns(table, "node"))
    columns = [
        (pl.col(c).mean() * factor).round(6).alias(f"{name} ({unit})")
        for c, (name, unit, factor) in QUANTITIES.items()
        if c in held.columns
    ]
    return held.group_by("node", "group", maintain_order=True).agg(columns).sort("node")
