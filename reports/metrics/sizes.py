"""Counts packet sizes in Wireshark's bins."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.roles import Span

# Wireshark's packet length bins (bytes of the frame, limits included)
BINS: tuple[tuple[int, int], ...] = (
    (0, 19),
    (20, 39),
    (40, 79),
    (80, 159),
    (160, 319),
    (320, 639),
    (640, 1279),
    (1280, 2559),
    (2560, 5119),
)
BIN_NAMES = (*(f"{low}-{high}" for low, high in BINS), f"{BINS[-1][1] + 1} and more")


def bin_name(column: str) -> pl.Expr:
    """Returns an expression for the bin of a frame length, as text."""
    number = pl.sum_horizontal([(pl.col(column) > high).cast(pl.UInt8) for _, high in BINS])
    return number.replace_strict(dict(enumerate(BIN_NAMES)), return_dtype=pl.String)


def sizes(path: Path, span: Span | None) -> pl.DataFrame:
    """Returns the packets of a capture in the span by bin, in order, empty bins included: bin, packets, share
    (0 to 1), with_payload (packets with TCP payload).
    """
    rows = scan(path, span).select(
        bin=bin_name("wire_bytes"), data=(pl.col("payload_bytes") > 0) & (pl.col("protocol") == "tcp")
    )
    counted = rows.group_by("bin").agg(packets=pl.len(), data=pl.col("data").sum()).collect()
    order = pl.DataFrame({"bin": BIN_NAMES})
    filled = order.join(counted, on="bin", how="left", maintain_order="left").fill_null(0)
    total = max(1, int(filled["packets"].sum()))
    return filled.select(
        "bin",
        pl.col("packets").cast(pl.Int64),
        share=pl.col("packets") / total,
        with_payload=pl.col("data").cast(pl.Int64),
    )


def scan(path: Path, span: Span | None) -> pl.LazyFrame:
    """Returns the packets of a capture in the span (without its end), or all if it is None, as a
    lazy frame.
    """
    rows = pl.scan_parquet(path)
    if span is None:
        return rows
    return rows.filter(pl.col("t_ns").is_between(span.start_ns, span.end_ns, closed="left"))
