"""Computes how the counters of light nodes and of link directions grow between successive samples."""

from __future__ import annotations

import polars as pl

from capture.conservation.evidence import Evidence
from contract.plan import Node, Plan

NODE = ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets")
LINK = ("bytes", "packets", "dropped")
# The events after which counters may restart, or after which frames may be discarded without being counted.
BREAKING = ("impair", "link-down", "link-up", "start", "stop", "kill", "restart")

DOWN = ("link-down", "stop", "kill")


def light_nodes(plan: Plan) -> list[Node]:
    """Returns the light nodes of the plan. The lab's kernel reads all their counters at one moment."""
    return [node for node in plan.nodes if node.kind == "light"]


def node_steps(e: Evidence) -> pl.DataFrame | None:
    """Returns the growth of each counter between samples (node, t_ns, sample, begin_ns, whole, NODE) of light
    nodes; None without samples.

    `whole` is false if a counter restarted, a sample is missing, or an event affected the node.
    """
    rows = _samples(e)
    return None if rows is None else _broken(_steps(rows, ("node",), NODE), e, "node")


def link_steps(e: Evidence) -> pl.DataFrame | None:
    """Returns the growth of each counter and of the backlog (`queued`) of every link direction between
    samples; None without samples of nodes or of links.

    A sample of links has the number of the last sample of nodes at or before its time. `whole` is false if
    a counter restarted, a sample is missing, or an event affected the link.
    """
    nodes = _samples(e)
    if nodes is None or e.links is None:
        return None
    times = nodes.select("t_ns", "sample").unique().sort("t_ns")
    rows = e.links.sort("t_ns").join_asof(times, on="t_ns", strategy="backward").drop_nulls("sample")
    rows = rows.sort("link", "direction", "t_ns")
    return _broken(_steps(rows, ("link", "direction"), LINK), e, "link")


def fallen(e: Evidence) -> int | None:
    """Returns the number of samples, counted for each light node, in which a counter of the node decreased
    although no event affected the node; None without samples.
    """
    rows = _samples(e)
    if rows is None:
        return None
    steps = _broken(_steps(rows, ("node",), NODE).with_columns(whole=pl.lit(True)), e, "node")
    return steps.filter(pl.col("whole") & pl.any_horizontal(pl.col(name) < 0 for name in NODE)).height


def _samples(e: Evidence) -> pl.DataFrame | None:
    """Returns the rows of light nodes with the number of their sample time, from 1; None without samples."""
    if e.nodes is None:
        return None
    names = [node.name for node in light_nodes(e.plan)]
    rows = e.nodes.filter(pl.col("node").is_in(names)).sort("node", "t_ns")
    return rows.with_columns(sample=pl.col("t_ns").rank("dense").cast(pl.Int64))


def _steps(rows: pl.DataFrame, over: tuple[str, ...], counters: tuple[str, ...]) -> pl.DataFrame:
    """Replaces each counter by its growth since the previous sample, begin_ns; `whole` is false where a
    counter restarted or a sample is missing. Leaves out the first sample, which has no previous one.

    `queued` is the growth of backlog_packets, if `rows` has this column.
    """
    grown = rows.with_columns(pl.col(name).diff().over(over) for name in counters)
    if "backlog_packets" in rows.columns:
        grown = grown.with_columns(queued=pl.col("backlog_packets").diff().over(over))
    next_one = pl.col("sample").diff().over(over) == 1
    return grown.with_columns(
        begin_ns=pl.col("t_ns").shift(1).over(over),
        whole=next_one & pl.all_horizontal(pl.col(name) >= 0 for name in counters),
    ).drop_nulls("begin_ns")


def _broken(steps: pl.DataFrame, e: Evidence, key: str) -> pl.DataFrame:
    """Sets `whole` to false for intervals in or just before which an event of BREAKING affected the node or
    link in column `key`, and while the node or link is down. Without events returns `steps` unchanged.
    """
    if e.events is None:
        return steps
    touching = e.events.filter(pl.col("action").is_in(BREAKING)).explode("targets")
    at = (
        touching.select(pl.col("targets").alias(key), "action", event_ns="t_ns").drop_nulls().sort("event_ns")
    )
    if at.is_empty():
        return steps
    # An event takes effect within some ms of its time, so the interval after it is left out, too. A link that
    # is down stays down until the next event; bridges discard frames to it without counting them.
    found = steps.sort("begin_ns").join_asof(
        at, left_on="t_ns", right_on="event_ns", by=key, strategy="backward", check_sortedness=False
    )
    near = pl.col("event_ns") >= 2 * pl.col("begin_ns") - pl.col("t_ns")
    down = pl.col("action").is_in(DOWN)
    return found.with_columns(whole=pl.col("whole") & ~(near | down).fill_null(False)).drop(
        "event_ns", "action"
    )
