"""Test 3: the highest rate at which a protocol keeps its bounds, of the rates that were run."""

from __future__ import annotations

import polars as pl

from reports.cell import Cell
from reports.metrics.messages import held_messages
from reports.papers.paper import Table
from reports.papers.reserve.boxes import MS, PROTOCOLS, SYSTEMS
from reports.series import parameters
from reports.study import Study

TRAFFIC = "rising"  # as reserve-3-highest-rate.yaml calls its runs
BOUND_MS = 100.0  # of the 99th percentile
WAYS = ("uplink", "downlink")


def held(cell: Cell) -> pl.DataFrame | None:
    """Rows system, rate, class, holds: whether none was lost and 99 % came within the bound."""
    said, messages = parameters(cell.run) | cell.levels, held_messages(cell.run)
    if messages is None or said.get("traffic") != TRAFFIC:
        return None
    lost = pl.col("received_ns").null_count() > 0
    slow = (pl.col("latency_ns") * MS).quantile(0.99) > BOUND_MS
    ours = [f"{way}-{protocol}" for way in WAYS for protocol in PROTOCOLS]
    rows = messages.filter(pl.col("class").is_in(ours) & pl.col("receiver").is_not_null())
    return (
        rows.group_by("class")
        .agg((~lost & ~slow).fill_null(False).alias("holds"))
        .with_columns(pl.lit(str(said["system"])).alias("system"), pl.lit(int(said["rate"])).alias("rate"))
    )


def tables(study: Study) -> tuple[Table, ...]:
    """A row a protocol and direction, a column a system; none without runs of the test."""
    found = [rows for cell in study.cells if (rows := held(cell)) is not None]
    if not found:
        return ()
    judged = pl.concat(found).group_by("system", "class", "rate").agg(pl.col("holds").all())
    systems = [system for system in SYSTEMS if system in judged["system"]]
    body = tuple(
        (f"{title}, {way}", *(_highest(judged, system, f"{way}-{protocol}") for system in systems))
        for protocol, title in PROTOCOLS.items()
        for way in WAYS
    )
    caption = (
        "Test 3. The highest of the rates that were run, messages a second, up to which none was lost and "
        f"99 % came within {BOUND_MS:g} ms, at this and every rate below; at least: none above was run."
    )
    return (Table("", caption, ("", *(SYSTEMS[system] for system in systems)), body),)


def _highest(judged: pl.DataFrame, system: str, name: str) -> str:
    rows = judged.filter((pl.col("system") == system) & (pl.col("class") == name)).sort("rate")
    if rows.is_empty():
        return ""
    kept = rows.filter(pl.col("holds").cum_min())
    if kept.is_empty():
        return f"below {rows['rate'][0]:,}"
    return f"{'at least ' if kept.height == rows.height else ''}{kept['rate'][-1]:,}"
