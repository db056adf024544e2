"""Computes the figures of bulk transfers: throughput of each flow at its receiver, retransmissions, smoothed
RTT.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import batch_means
from reports.roles import SECOND
from reports.rundir import Run

# largest number of flows with figures of their own: those that carried most; transfers.parquet has all
MOST = 20
SENDER, RECEIVER = 0, 1  # values of `leg`, the end at which bytes were counted
COUNTERS = {"retransmits": ("transfer_retransmits", "segments"), "lost": ("transfer_lost", "packets")}


def transfer_metrics(run: Run) -> list[Metric]:
    """Returns the mean rate, bytes, retransmissions, lost packets and smoothed RTT of each of the MOST
    largest flows, as far as they were recorded; empty without transfers.
    """
    table = run.table("transfers")
    if table is None:
        return []
    found: list[Metric] = []
    for name, traffic_class in _largest(table):
        rows = table.filter(pl.col("name") == name).sort("t_ns")
        of = Of(traffic_class=traffic_class, flow=name)
        found += _rate(of, _end(rows)) + _counters(of, rows)
    return found


def transfer_samples(run: Run) -> pl.DataFrame | None:
    """Returns the columns t_ns, name, bps of the MOST largest flows, counted by their receivers, else by
    their senders; None without transfers.
    """
    parts = list(arrived(run).values())
    if not parts:
        return None
    return pl.concat(parts).select("t_ns", "name", "bps").drop_nulls().sort("name", "t_ns")


def arrived(run: Run) -> dict[tuple[str, str], pl.DataFrame]:
    """Returns the samples of each of the MOST largest flows by (name, class), counted at the receiver if it
    counts, else at the sender; empty without transfers.
    """
    table = run.table("transfers")
    if table is None:
        return {}
    return {key: _end(table.filter(pl.col("name") == key[0])) for key in _largest(table)}


def rtt_samples(run: Run) -> pl.DataFrame | None:
    """Returns the columns t_ns, name, rtt_ns (smoothed by the sender's kernel) of the MOST largest flows;
    None without transfers.
    """
    table = run.table("transfers")
    if table is None:
        return None
    names = [name for name, _ in _largest(table)]
    rows = table.filter((pl.col("leg") == SENDER) & pl.col("name").is_in(names))
    return rows.select("t_ns", "name", "rtt_ns").drop_nulls().sort("name", "t_ns")


def window_samples(run: Run) -> pl.DataFrame | None:
    """Returns the columns t_ns, name, segments of the MOST largest flows: congestion windows, summed over a
    flow's connections; None if none were recorded.
    """
    table, carried = run.table("windows"), run.table("transfers")
    if table is None or carried is None:
        return None
    rows = table.filter(pl.col("name").is_in([name for name, _ in _largest(carried)]))
    return rows.group_by("name", "t_ns").agg(pl.col("segments").sum()).sort("name", "t_ns")


def _largest(table: pl.DataFrame) -> list[tuple[str, str]]:
    """Returns the names and classes of the MOST flows that carried most, sorted by name."""
    last = table.group_by("name", "class", maintain_order=True).agg(pl.col("bytes").max())
    most = last.sort("bytes", "name", descending=[True, False], nulls_last=True).head(MOST)
    return sorted(most.select("name", "class").iter_rows())


def _end(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the samples of one flow at its receiver, or all of them if no receiver counted."""
    arrived = rows.filter(pl.col("leg") == RECEIVER)
    return (arrived if arrived.height else rows).sort("t_ns")


def _rate(of: Of, rows: pl.DataFrame) -> list[Metric]:
    total = int(rows.get_column("bytes").max() or 0)  # type: ignore[arg-type]  # an integer column
    found = [count("transfer_bytes", of, total / 1e6, "MB", rows.height, "last count")]
    bps = _by_the_second(rows.drop_nulls(["t_ns", "bytes"]))
    return [metric("transfer_rate", of, "Mbit/s", batch_means(bps), 1e-6), *found] if bps else found


def _by_the_second(rows: pl.DataFrame) -> list[float]:
    """Returns the rate in bit/s in equal steps of about a second, from the first count to the last; empty
    with fewer than two counts.

    A stalled transfer reports nothing, so its next sample covers a longer time; the last sample covers a
    shorter one. A counter that restarts continues from zero.
    """
    at_ns, counted = (rows.get_column(name).to_numpy().astype(np.int64) for name in ("t_ns", "bytes"))
    if len(at_ns) < 2 or at_ns[-1] <= at_ns[0]:
        return []
    grown, passed_ns = np.diff(counted), at_ns - at_ns[0]
    carried = np.concatenate(([0], np.cumsum(np.where(grown >= 0, grown, counted[1:]))))
    steps = max(1, round(float(passed_ns[-1]) / SECOND))
    grid_ns = np.linspace(0.0, float(passed_ns[-1]), steps + 1)
    by_step = np.diff(np.interp(grid_ns, passed_ns, carried))
    return [float(part) for part in by_step * (8e9 * steps / float(passed_ns[-1]))]


def _counters(of: Of, rows: pl.DataFrame) -> list[Metric]:
    found = []
    for column, (name, unit) in COUNTERS.items():
        known = rows.get_column(column).drop_nulls()
        if known.len():
            found.append(count(name, of, int(known.max()), unit, known.len(), "last count"))  # type: ignore[arg-type]
    rtt = rows.filter(pl.col("leg") == SENDER).get_column("rtt_ns").drop_nulls().to_list()
    if rtt:
        found.append(metric("transfer_rtt", of, "ms", batch_means([float(v) for v in rtt]), 1e-6))
    return found
