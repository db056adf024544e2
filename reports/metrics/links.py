"""Computes the figures of links in use: utilisation, drops and queues of each direction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from capture import requested
from reports.metrics.goodput import crossing
from reports.metrics.load import interval_ns, within
from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import Estimate, batch_means
from reports.roles import phases
from reports.rundir import Run

MOST = 12  # largest number of links with figures of their own: those that carried most; links.parquet has all
QUANTILE = "nearest rank of the samples, one a second"


def link_metrics(run: Run, most: int | None = MOST) -> list[Metric]:
    """Returns the metrics of the `most` busiest links (None: of all) by direction over the hold, or over the
    whole run if no hold is recorded; empty without link samples.
    """
    samples_of_all, hold = run.table("links"), phases(run).get("hold")
    if samples_of_all is None:
        return []
    table = whole(samples_of_all)
    one_way = table.filter(pl.col("direction") == table.item(0, "direction"))
    interval = interval_ns(one_way, "link")
    held = within(table, hold, interval) if hold else table
    names = busiest(held, most)
    asked = requested.rates(run.plan, run.table("events"), run.table("impairments"))
    useful = crossing(run, names, _lossy(held))
    found: list[Metric] = []
    rows = held.filter(pl.col("link").is_in(names)).sort("t_ns")
    for (link, direction), samples in rows.group_by("link", "direction", maintain_order=True):
        key = (str(link), str(direction))
        of = Of(link=key[0], direction=key[1])
        if samples.get_column("bps").drop_nulls().len():
            found += _carried(of, samples) + _utilisation(of, samples, asked.get(key, []), interval)
            found += _drops(of, samples)
        if key in useful:
            bps, packets, point = useful[key]
            method = f"TCP and UDP payload of packets captured at {point}, each byte once"
            found.append(count("link_goodput", of, bps / 1e6, "Mbit/s", packets, method))
    every = within(samples_of_all, hold, interval) if hold else samples_of_all
    return found + _classes(every.filter(pl.col("link").is_in(names)))


def _lossy(rows: pl.DataFrame) -> set[tuple[str, str]]:
    """Returns the (link, direction) pairs whose direction dropped packets."""
    if "dropped" not in rows.columns:
        return set()
    grown = pl.col("dropped").max() - pl.col("dropped").min()
    return set(
        rows.group_by("link", "direction")
        .agg(grown)
        .filter(pl.col("dropped") > 0)
        .select("link", "direction")
        .iter_rows()
    )


def whole(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the samples of whole directions, without the rows of queue classes."""
    return table.filter(pl.col("class").is_null()) if "class" in table.columns else table


def _classes(table: pl.DataFrame) -> list[Metric]:
    """Returns throughput, drops, marks and queue lengths of each band, class or tin of a queue that has
    samples of its throughput.
    """
    if "class" not in table.columns:
        return []
    found: list[Metric] = []
    rows = table.filter(pl.col("class").is_not_null()).sort("t_ns")
    for (link, direction, name), samples in rows.group_by("link", "direction", "class", maintain_order=True):
        of = Of(link=str(link), direction=str(direction), queue_class=str(name))
        bps = samples.get_column("bps").drop_nulls().to_list()
        if not bps:
            continue
        waiting = samples.get_column("backlog_packets").to_list()
        found.append(metric("queue_carried", of, "Mbit/s", batch_means(bps), 1e-6))
        for metric_name, column in (("queue_dropped", "dropped"), ("queue_marked", "marked")):
            packets = _grown(samples.get_column(column))
            sent = _grown(samples.get_column("packets"))
            found.append(count(metric_name, of, packets, "packets", sent, "difference of the counters"))
        found.append(_quantile("queue_p50", of, waiting, 0.5, "packets"))
        found.append(_quantile("queue_max", of, waiting, 1.0, "packets"))
    return found


def busiest(table: pl.DataFrame, most: int | None = MOST) -> list[str]:
    """Returns the names of the links that carried most, at most `most`; None is all."""
    carried = table.group_by("link").agg(pl.col("bps").sum()).sort("bps", "link", descending=[True, False])
    return [str(name) for name in carried.get_column("link").head(most or carried.height)]


def _carried(of: Of, rows: pl.DataFrame) -> list[Metric]:
    bps, waiting = rows.get_column("bps").drop_nulls().to_list(), rows.get_column("backlog_packets").to_list()
    return [
        metric("link_carried", of, "Mbit/s", batch_means(bps), 1e-6),
        _quantile("link_peak", of, bps, 1.0, "Mbit/s", 1e-6),
        _quantile("link_queue_p50", of, waiting, 0.5, "packets"),
        _quantile("link_queue_p99", of, waiting, 0.99, "packets"),
        _quantile("link_queue_max", of, waiting, 1.0, "packets"),
    ]


def _utilisation(of: Of, rows: pl.DataFrame, steps: requested.Steps, interval: int) -> list[Metric]:
    """Returns the utilisation relative to the requested rate at each moment; samples without a rate, or
    during which it changed, are left out.
    """
    known = rows.drop_nulls("bps")
    if not steps:
        return []
    begins, limits = np.array(steps).T
    end_ns = known.get_column("t_ns").to_numpy()
    first, last = (np.searchsorted(begins, at_ns, side="right") - 1 for at_ns in (end_ns - interval, end_ns))
    kept = (first == last) & (limits[last] > 0)
    found = []
    if steps[0][1]:
        found.append(count("link_asked", of, steps[0][1] / 1e6, "Mbit/s", 1, "as the file requests"))
    if kept.any():
        scale = int(limits[last][kept][0])  # samples at other rates are scaled to this one
        bps = (known.get_column("bps").to_numpy()[kept] * (scale / limits[last][kept])).tolist()
        mean = batch_means(bps)
        changed = "; relative to the rate of the moment, which events changed" if len(steps) > 1 else ""
        mean = replace(mean, method=mean.method + changed)
        found.append(metric("link_utilisation", of, "%", mean, 100 / scale))
        found.append(_quantile("link_utilisation_p99", of, bps, 0.99, "%", 100 / scale))
    return found


def _drops(of: Of, rows: pl.DataFrame) -> list[Metric]:
    """Returns the dropped packets, as a number and as a share of the offered packets, with requested loss;
    empty with fewer than two samples, and without the share if no packet was offered.
    """
    if rows.height < 2 or "packets" not in rows.columns:
        return []
    dropped, sent = (_grown(rows.get_column(name)) for name in ("dropped", "packets"))
    offered, method = sent + dropped, "difference of the counters"
    found = [count("link_dropped", of, dropped, "packets", offered, method)]
    if offered > 0:
        share = 100 * dropped / offered
        found.append(count("link_dropped_share", of, share, "% of packets", offered, method))
    return found


def _grown(counter: pl.Series) -> int:
    """Returns the growth of a counter since the first sample; a counter that falls was restarted at zero by a
    new qdisc.
    """
    values = counter.to_numpy().astype(np.int64)
    steps = np.diff(values)
    return int(np.where(steps >= 0, steps, values[1:]).sum())


def _quantile(name: str, of: Of, values: list[float], q: float, unit: str, times: float = 1.0) -> Metric:
    value = float(np.quantile(np.asarray(values, dtype=float), q, method="inverted_cdf"))
    return metric(name, of, unit, Estimate(value, len(values), None, None, QUANTILE), times)
