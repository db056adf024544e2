"""Converts counters sampled once a second to rates and shares over the interval before each sample."""

from __future__ import annotations

import polars as pl

from capture.rawfile import DECIMAL, INTEGER, NAME, OPTIONAL
from contract.plan import Plan

NODES = {"t_ns": INTEGER, "node": NAME} | dict.fromkeys(
    ("cpu_ns", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "memory_bytes"), INTEGER
)
LINKS = {"t_ns": INTEGER, "link": NAME, "direction": NAME} | dict.fromkeys(
    ("bytes", "packets", "dropped", "overlimits", "backlog_bytes", "backlog_packets"), INTEGER
)
TIMES = ("user_ns", "nice_ns", "system_ns", "idle_ns", "iowait_ns", "irq_ns", "softirq_ns", "steal_ns")
CLASSES = {"t_ns": INTEGER} | dict.fromkeys(("link", "direction", "class"), NAME) | dict.fromkeys(
    ("bytes", "packets", "dropped", "overlimits", "marked", "backlog_bytes", "backlog_packets"), INTEGER
)  # fmt: skip
HOST = (
    {"t_ns": INTEGER} | dict.fromkeys(TIMES, INTEGER)
    | {"load1": DECIMAL, "memory_available_bytes": INTEGER, "cores": INTEGER}
)  # fmt: skip

DISKS = (
    {"node": NAME, "disk": NAME}
    | dict.fromkeys(("read_bytes", "written_bytes"), INTEGER)
    | dict.fromkeys(("reads", "writes", "memory"), OPTIONAL)
)
STACKS = {"node": NAME, "counter": NAME, "value": INTEGER}


def _step(column: str, over: tuple[str, ...]) -> pl.Expr:
    """Returns an expression for a counter's growth since the previous sample; null for the first sample, and
    after a reset.
    """
    step = pl.col(column).diff()
    step = step.over(over) if over else step
    return pl.when(step >= 0).then(step)


def _per_second(column: str, over: tuple[str, ...], factor: int = 1) -> pl.Expr:
    return _step(column, over) * (factor * 1e9) / _step("t_ns", over)


def _group(plan: Plan) -> pl.Expr:
    """Returns an expression for the group of the row's node; null if the node is not in the plan."""
    groups = {node.name: node.group for node in plan.nodes}
    return pl.col("node").replace_strict(groups, default=None, return_dtype=pl.String).alias("group")


def stacks(raw: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table stacks.parquet: the rows of raw counters of network stacks with each node's group."""
    return raw.with_columns(_group(plan)).sort("node", "counter", maintain_order=True)


def disks(raw: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table disks.parquet: the rows of raw disk counters with the group of each node."""
    return raw.with_columns(pl.col("memory").cast(pl.Boolean), _group(plan)).sort("node", "disk")


def nodes(raw: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table nodes.parquet: adds each node's group, cpu_share of one core, and rates in bits and
    packets a second. Shares and rates are null for a node's first sample and after a reset.
    """
    over = ("node",)
    return (
        raw.sort("node", "t_ns")
        .with_columns(
            _group(plan),
            cpu_share=_step("cpu_ns", over) / _step("t_ns", over),
            rx_bps=_per_second("rx_bytes", over, 8),
            tx_bps=_per_second("tx_bytes", over, 8),
            rx_pps=_per_second("rx_packets", over),
            tx_pps=_per_second("tx_packets", over),
        )
        .sort("t_ns", "node", maintain_order=True)
    )


def links(raw: pl.DataFrame, classes: pl.DataFrame | None = None) -> pl.DataFrame:
    """Returns the table links.parquet without requested values: adds bps and pps, the bits and packets sent a
    second by the root qdisc if `class` is null, else by that class or band. Null for the first sample and
    after a reset.
    """
    over = ("link", "direction", "class")
    whole = raw.with_columns(pl.lit(None, pl.String).alias("class"), pl.lit(None, pl.Int64).alias("marked"))
    every = whole if classes is None else pl.concat([whole, classes.select(whole.columns)])
    return (
        every.sort(*over, "t_ns")
        .with_columns(bps=_per_second("bytes", over, 8), pps=_per_second("packets", over))
        .sort("t_ns", *over, maintain_order=True)
    )


def host(raw: pl.DataFrame, where: str) -> pl.DataFrame:
    """Returns the rows of the table host.parquet for one kernel, with busy_share and steal_share of the time
    of all cores over the interval before each sample; null for the first. `where` is lab (its kernel), outer,
    or a host's name.
    """
    every = pl.sum_horizontal(_step(name, ()) for name in TIMES)
    idle = _step("idle_ns", ()) + _step("iowait_ns", ())
    return raw.sort("t_ns").select(
        "t_ns",
        pl.lit(where).alias("where"),
        # If two samples have the same time, the shares are NaN, which would make every mean NaN.
        busy_share=(1 - idle / every).fill_nan(None),
        steal_share=(_step("steal_ns", ()) / every).fill_nan(None),
        load1="load1",
        memory_available_bytes="memory_available_bytes",
        cores="cores",
    )
