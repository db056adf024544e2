"""Makes the tables of bulk flows: their progress second by second at both ends, and congestion windows."""

from __future__ import annotations

import polars as pl

from capture import expected
from contract.plan import Plan
from contract.tables import TABLES


def table(progress: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table transfers.parquet from records of kind B.

    receiver is the end that counted; for a count of the sender it is the flow's only receiver, or null if
    the flow has several. bps is the bits a second since the last record of the same flow, end and leg;
    null for the first record and after a count that decreased.
    """
    only = (
        expected.deliveries(plan).group_by("flow").agg(pl.col("receiver").first(), receivers=pl.len())
        .filter(pl.col("receivers") == 1)
    )  # fmt: skip
    over = ("flow", "endpoint", "leg")
    step_ns = pl.col("t_ns").diff().over(over)
    grown = pl.col("bytes").diff().over(over)
    return (
        progress.with_columns(pl.col("leg").cast(pl.UInt8))
        .sort("flow", "endpoint", "leg", "t_ns")
        .with_columns(bps=pl.when((step_ns > 0) & (grown >= 0)).then(grown * 8e9 / step_ns))
        .join(expected.flows(plan), on="flow", how="left")
        .join(only, on="flow", how="left")
        .with_columns(receiver=pl.when(pl.col("leg") == 1).then("endpoint").otherwise("receiver"))
        .select(TABLES["transfers"].names)
        .sort("t_ns", "flow", "leg", "endpoint", maintain_order=True)
    )


def windows(samples: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Returns the table windows.parquet from records of kind W: a congestion window for each connection and
    sample.
    """
    return (
        samples.join(expected.flows(plan), on="flow", how="left")
        .with_columns(bytes=pl.col("segments") * pl.col("segment_bytes"))
        .select(TABLES["windows"].names)
        .sort("t_ns", "flow", "stream", maintain_order=True)
    )
