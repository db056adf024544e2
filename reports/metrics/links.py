"""Links in use: how much each direction carried of what it was asked to, what it dropped, what waited."""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.goodput import crossing
from reports.metrics.load import interval_ns, within
from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import Estimate, batch_means
from reports.roles import phases
from reports.rundir import Run

MOST = 12  # links with figures of their own, those that carried most; links.parquet has all
QUANTILE = "nearest rank of the samples, one a second"


def rates(run: Run) -> dict[tuple[str, str], int]:
    """The rate asked of each direction that was asked for one, bit/s, as the run began."""
    return {
        (str(link["name"]), name): int(link[name]["impairment"]["rate_bps"])
        for link in run.plan.get("links", [])
        for name in ("forward", "reverse")
        if ((link.get(name) or {}).get("impairment") or {}).get("rate_bps")
    }


def link_metrics(run: Run) -> list[Metric]:
    """Of the hold, by link and direction; of the whole run where no hold is recorded."""
    table, hold = run.table("links"), phases(run).get("hold")
    if table is None:
        return []
    held = within(table, hold, interval_ns(table, "link")) if hold else table
    names = busiest(held)
    asked, useful = rates(run), crossing(run, names)
    found: list[Metric] = []
    rows = held.filter(pl.col("link").is_in(names)).sort("t_ns")
    for (link, direction), samples in rows.group_by("link", "direction", maintain_order=True):
        key = (str(link), str(direction))
        of = Of(link=key[0], direction=key[1])
        found += _of_direction(of, samples, asked.get(key))
        if key in useful:
            bps, packets, point = useful[key]
            method = f"TCP and UDP payload of packets captured at {point}, each byte once"
            found.append(count("link_goodput", of, bps / 1e6, "Mbit/s", packets, method))
    return found


def busiest(table: pl.DataFrame) -> list[str]:
    """The names of the links that carried most, at most 12."""
    carried = table.group_by("link").agg(pl.col("bps").sum()).sort("bps", "link", descending=[True, False])
    return [str(name) for name in carried.get_column("link").head(MOST)]


def _of_direction(of: Of, rows: pl.DataFrame, asked: int | None) -> list[Metric]:
    bps = rows.get_column("bps").drop_nulls().to_list()
    if not bps:
        return []
    waiting = rows.get_column("backlog_packets").to_list()
    found = [
        metric("link_carried", of, "Mbit/s", batch_means(bps), 1e-6),
        _quantile("link_peak", of, bps, 1.0, "Mbit/s", 1e-6),
        _quantile("link_queue_p50", of, waiting, 0.5, "packets"),
        _quantile("link_queue_p99", of, waiting, 0.99, "packets"),
        _quantile("link_queue_max", of, waiting, 1.0, "packets"),
    ]
    if asked:
        found.append(count("link_asked", of, asked / 1e6, "Mbit/s", 1, "as the file asks"))
        found.append(metric("link_utilisation", of, "%", batch_means(bps), 100 / asked))
        found.append(_quantile("link_utilisation_p99", of, bps, 0.99, "%", 100 / asked))
    return found + _drops(of, rows)


def _drops(of: Of, rows: pl.DataFrame) -> list[Metric]:
    """Packets that the direction dropped of those offered to it, asked-for loss included."""
    if rows.height < 2 or "packets" not in rows.columns:
        return []
    dropped, sent = (int(rows.item(-1, name)) - int(rows.item(0, name)) for name in ("dropped", "packets"))
    offered, method = sent + dropped, "difference of the counters"
    found = [count("link_dropped", of, dropped, "packets", offered, method)]
    if offered > 0:
        share = 100 * dropped / offered
        found.append(count("link_dropped_share", of, share, "% of packets", offered, method))
    return found


def _quantile(name: str, of: Of, values: list[float], q: float, unit: str, times: float = 1.0) -> Metric:
    value = float(np.quantile(np.asarray(values, dtype=float), q, method="inverted_cdf"))
    return metric(name, of, unit, Estimate(value, len(values), None, None, QUANTILE), times)
