"""Captured packets: sizes in the paper's bins, goodput, protocol overhead."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, count, metric
from reports.metrics.stats import BATCHES, ratio_batches
from reports.roles import Span, payload_bytes
from reports.rundir import Run

# Wireshark's packet length bins as figure 14 of the vNET paper has them (bytes of the frame, both ends in)
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
    """The bin of a frame length, as text."""
    number = pl.sum_horizontal([(pl.col(column) > high).cast(pl.UInt8) for _, high in BINS])
    return number.replace_strict(dict(enumerate(BIN_NAMES)), return_dtype=pl.String)


def sizes(path: Path, span: Span | None = None) -> pl.DataFrame:
    """One row a bin, in order: bin, packets, share of all packets, tcp_payload_share within the bin."""
    rows = _scan(path, span).select(
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


def _scan(path: Path, span: Span | None) -> pl.LazyFrame:
    rows = pl.scan_parquet(path)
    if span is None:
        return rows
    return rows.filter(pl.col("t_ns").is_between(span.start_ns, span.end_ns, closed="left"))


def packet_metrics(run: Run) -> list[Metric]:
    """Every capture point's figures over the whole capture; intervals from ten equal spans of time."""
    found: list[Metric] = []
    for point, path in run.captures.items():
        found += _of_capture(run, point, path)
    return found


def _of_capture(run: Run, point: str, path: Path) -> list[Metric]:
    sums = _sums(path)
    total = int(sums["packets"].sum())
    if total == 0:
        return []
    found = [
        count("packets", point, total, "packets", total, "count"),
        count("wire_bytes", point, int(sums["wire"].sum()), "bytes", total, "sum of frame lengths"),
    ]
    for name, top, bottom in (
        ("goodput_packets", "data", "packets"),
        ("goodput_bytes", "payload", "wire"),
        ("arp_packets", "arp", "packets"),
        ("retransmitted_packets", "again", "packets"),
    ):
        ratio = ratio_batches(sums[top].to_list(), sums[bottom].to_list())
        found.append(metric(name, point, "%", ratio, 100.0))
    found += _application(run, point, sums, total)
    for row in sizes(path).iter_rows(named=True):
        share = 100.0 * row["share"]
        found.append(count("packet_size", f"{point} {row['bin']}", share, "% of packets", total, "share"))
    for row in publishes(path).iter_rows(named=True):
        scope, n = f"{point} {row['bin']}", row["packets"]
        found.append(
            count(
                "publish_packets",
                scope,
                100.0 * row["share"],
                "% of the bin",
                n,
                "share that completes a PUBLISH",
            )
        )
    return found


def publishes(path: Path) -> pl.DataFrame:
    """Per size bin: bin, packets (retransmissions left out), share of them that completes a PUBLISH."""
    rows = pl.scan_parquet(path)
    if "mqtt_types" not in rows.collect_schema().names():
        return pl.DataFrame(schema={"bin": pl.String, "packets": pl.Int64, "share": pl.Float64})
    first = rows.filter(~pl.col("retransmission").fill_null(False))
    carries = pl.col("mqtt_types").list.contains("PUBLISH").fill_null(False)
    return (
        first.group_by(bin=bin_name("wire_bytes"))
        .agg(packets=pl.len(), share=carries.mean())
        .sort("bin")
        .collect()
    )


def _application(run: Run, point: str, sums: pl.DataFrame, total: int) -> list[Metric]:
    """Share of wire bytes that is the application's payload, and the rest: the protocol overhead."""
    size = payload_bytes(run)
    if size is None or not sums["publish"].sum():
        return []
    useful = [n * size for n in sums["publish"].to_list()]
    ratio = ratio_batches(useful, sums["wire"].to_list())
    share = metric("application_bytes", point, "%", ratio, 100.0)
    low = None if share.high is None else 100.0 - share.high
    high = None if share.low is None else 100.0 - share.low
    overhead = Metric(
        "overhead", point, 100.0 - share.value, "% of wire bytes", total, low, high, share.method
    )
    return [share, overhead]


def _sums(path: Path) -> pl.DataFrame:
    """Sums over ten equal spans of the capture's time: packets, wire, data, payload, arp, again, publish."""
    rows = pl.scan_parquet(path)
    columns = rows.collect_schema().names()
    tcp = pl.col("protocol") == "tcp"
    first, last = pl.col("t_ns").min(), pl.col("t_ns").max()
    batch = ((pl.col("t_ns") - first) * BATCHES // (last - first + 1)).alias("batch")
    return (
        rows.with_columns(batch)
        .group_by("batch")
        .agg(
            packets=pl.len(),
            wire=pl.col("wire_bytes").sum(),
            data=(tcp & (pl.col("payload_bytes") > 0)).sum(),
            payload=pl.when(tcp).then(pl.col("payload_bytes")).otherwise(0).sum(),
            arp=(pl.col("protocol") == "arp").sum(),
            again=pl.col("retransmission").fill_null(False).sum(),
            publish=_publishes(columns),
        )
        .sort("batch")
        .collect()
    )


def _publishes(columns: list[str]) -> pl.Expr:
    if "mqtt_types" not in columns:
        return pl.lit(0)
    return pl.col("mqtt_types").list.count_matches("PUBLISH").fill_null(0).sum()
