"""Computes the fairness with which bulk transfers share their bottleneck while all of them send."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import batch_means
from reports.metrics.transfers import arrived
from reports.roles import SECOND
from reports.rundir import Run

FEWEST = 2  # least number of transfers that can share a bottleneck
Rates = npt.NDArray[np.float64]


def jain(rates: Rates) -> Rates:
    """Returns Jain's index over the last axis: 1 if all rates are equal or zero, 1/n if one of n has
    everything.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.
    """
    n, squares = rates.shape[-1], (rates**2).sum(axis=-1)
    some = np.where(squares > 0, squares, 1.0)
    return np.where(squares > 0, rates.sum(axis=-1) ** 2 / (n * some), 1.0)


def shared_rates(run: Run) -> pl.DataFrame | None:
    """Returns the column t_ns and one column of bit/s for each of the largest transfers, in steps of about a
    second.

    The rows cover the time in which all of them send. Transfers with a single sample are left out; None if
    fewer than two remain, or if the time is shorter than a second.
    """
    parts = {name: rows for (name, _), rows in arrived(run).items() if rows.height > 1}
    if len(parts) < FEWEST:
        return None
    start = max(_whole(rows, "t_ns", 0) for rows in parts.values())
    end = min(_whole(rows, "t_ns", -1) for rows in parts.values())
    steps = (end - start) // SECOND
    if steps < 1:
        return None
    grid = np.linspace(start, end, steps + 1)
    return pl.DataFrame({"t_ns": grid[1:].astype(np.int64)} | {n: _rates(r, grid) for n, r in parts.items()})


def _whole(rows: pl.DataFrame, column: str, place: int) -> int:
    return int(rows.get_column(column)[place])


def _rates(rows: pl.DataFrame, grid: Rates) -> Rates:
    """Returns the rate in bit/s between successive times of the grid, interpolated from the byte counts."""
    at, counted = (rows.get_column(name).to_numpy().astype(np.float64) for name in ("t_ns", "bytes"))
    steps: Any = np.diff(np.interp(grid, at, np.maximum.accumulate(counted)))
    return np.asarray(8e9 * steps / np.diff(grid))


def fairness_metrics(run: Run) -> list[Metric]:
    """Returns Jain's index of the mean rates and of each second's rates, and the share of bytes of each
    class, over the time in which all transfers send; empty without such a time.
    """
    rows = shared_rates(run)
    if rows is None:
        return []
    rates = rows.drop("t_ns").to_numpy()
    seconds, n = rates.shape
    method = f"Jain's index of {n} transfers, of their means over the {seconds} s in which all of them send"
    found = [
        count("fairness", Of(), float(jain(rates.mean(axis=0))), "1 is even", n, method),
        metric("fairness_by_second", Of(), "1 is even", batch_means(jain(rates).tolist())),
    ]
    whole, classes = float(rates.sum()), dict(arrived(run))
    for name in sorted({name for _, name in classes}) if whole > 0 else ():
        flows = [flow for flow, of in classes if of == name and flow in rows.columns]
        share = 100 * float(rows.select(flows).to_numpy().sum()) / whole
        found.append(
            count("share", Of(traffic_class=name), share, "%", len(flows), "of all bytes in that time")
        )
    return found
