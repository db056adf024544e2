"""Computes the load of nodes against the number of connected clients, while the clients connect
one by one.
"""

from __future__ import annotations

import math

import polars as pl

from reports.metrics.load import QUANTITIES, interval_ns, load_metrics, within
from reports.metrics.metric import Of, find
from reports.roles import client_endpoints, node_of_endpoint, phases, roles
from reports.rundir import Run

MOST_STEPS = 24  # largest number of points of a curve: enough for its shape, few enough to average the noise
SAMPLES_A_STEP = 3  # samples in each step, so that every repetition of a short ramp has one in every step
SCHEMA = {
    "step": pl.Int64,
    "clients": pl.Float64,
    "quantity": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "part": pl.String,
    "n": pl.Int64,
}
NO_INTERVAL = pl.lit(None, dtype=pl.Float64)


def connected(run: Run) -> pl.DataFrame | None:
    """Returns a step function: t_ns and the number of clients that are connected from then on; a reconnect of
    a connected client adds none. None without the table of sessions.
    """
    table = run.table("sessions")
    if table is None:
        return None
    changes = (
        table.filter(pl.col("what").is_in(["connected", "disconnected", "failed"]))
        .sort("t_ns")
        .with_columns(up=pl.col("what") == "connected")
        .with_columns(before=pl.col("up").shift(1, fill_value=False).over("endpoint"))
        .with_columns(change=pl.col("up").cast(pl.Int64) - pl.col("before").cast(pl.Int64))
    )
    return changes.select("t_ns", clients=pl.col("change").cum_sum())


def against_clients(run: Run, which: str) -> pl.DataFrame | None:
    """Returns the load of a set of nodes in columns step, clients, quantity, value, low, high, part (ramp or
    hold), n; None if the run has no ramp, no clients or no such nodes.

    Ramp: samples fall into at most MOST_STEPS equal steps of clients (fewer if there are few samples), by the
    number of clients in the middle of the sampling interval; value is their mean, n their number. Hold: one
    row for each quantity, at the number of clients when the hold began. Samples of several nodes are
    averaged; nodes of senders and clients count from their first connection on.
    """
    nodes = roles(run).sets().get(which)
    table, steps, spans = run.table("nodes"), connected(run), phases(run)
    if nodes is None or table is None or steps is None or steps.is_empty() or "ramp" not in spans:
        return None
    step_ns = interval_ns(table, "node")
    mean = [pl.col(c).mean() * f for c, (_, _, f) in QUANTITIES.items() if c in table.columns]
    rows = within(table.filter(pl.col("node").is_in(nodes)), spans["ramp"], step_ns)
    if which in ("sender", "client"):
        rows = _only_connected(rows, run, step_ns)
    rows = (
        rows.group_by("t_ns", maintain_order=True)
        .agg(mean)
        .sort("t_ns")
        .with_columns(middle=pl.col("t_ns") - step_ns // 2)
    )
    rows = rows.join_asof(steps.sort("t_ns"), left_on="middle", right_on="t_ns", strategy="backward")
    curve = _binned(rows.with_columns(pl.col("clients").fill_null(0)), _width(run, step_ns))
    return pl.concat([curve, _held(run, which, steps)]).sort(
        "quantity", "part", "step", descending=[False, True, False]
    )


def total_clients(run: Run) -> int:
    """Returns the number of clients in the plan: the sessions that connect to others."""
    return len(client_endpoints(run))


def _width(run: Run, step_ns: int) -> int:
    """Returns the number of clients in a step, computed from the planned ramp, so that the steps of all
    repetitions match.
    """
    samples = run.plan.ramp_ns // step_ns
    count = min(MOST_STEPS, max(1, samples // SAMPLES_A_STEP))
    return max(1, math.ceil(total_clients(run) / count))


def _only_connected(rows: pl.DataFrame, run: Run, step_ns: int) -> pl.DataFrame:
    """Returns the samples whose whole interval follows the first connection of their node's client; idle
    nodes would lower the mean.
    """
    sessions = run.tables["sessions"].filter(pl.col("what") == "connected")
    sessions = sessions.with_columns(node=pl.col("endpoint").replace(node_of_endpoint(run)))
    first = sessions.group_by("node").agg(pl.col("t_ns").min().alias("since"))
    joined = rows.join(first, on="node", how="inner")
    return joined.filter(pl.col("t_ns") - step_ns >= pl.col("since"))


def _binned(rows: pl.DataFrame, width: int) -> pl.DataFrame:
    named = {c: name for c, (name, _, _) in QUANTITIES.items() if c in rows.columns}
    return (
        rows.rename(named)
        .with_columns(step=pl.col("clients") // width)
        .unpivot(
            on=list(named.values()), index=["step", "clients"], variable_name="quantity", value_name="value"
        )
        .drop_nulls("value")
        .group_by("step", "quantity", maintain_order=True)
        .agg(pl.col("clients").mean(), pl.col("value").mean(), n=pl.len().cast(pl.Int64))
        .with_columns(part=pl.lit("ramp"), low=NO_INTERVAL, high=NO_INTERVAL)
        .select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    )


def _held(run: Run, which: str, steps: pl.DataFrame) -> pl.DataFrame:
    hold = phases(run).get("hold")
    before = steps.filter(pl.col("t_ns") <= hold.start_ns) if hold else steps.clear()
    if before.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    clients = float(before.item(-1, "clients"))
    metrics = load_metrics(run, (which,))
    rows = []
    for name, _, _ in QUANTITIES.values():
        found = find(metrics, name, Of(nodes=which))
        if found:
            rows.append((MOST_STEPS + 1, clients, name, found.value, found.low, found.high, "hold", found.n))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
