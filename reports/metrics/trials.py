"""Computes the figures of RFC 2544 for one run, by frame size and stream: throughput, back-to-back frames,
latency and frame loss.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from capture.ethernet import line_fps
from capture.trials import one_clock, streams
from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import Estimate, t_interval
from reports.rundir import Run

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
METHOD = "nearest bucket of all frames of the latency trials, to 1/64; neighbouring frames are correlated"


def line_rates(run: Run) -> dict[str, int]:
    """Returns the line rate of each stream in bit/s, as the topology states it."""
    return {stream: int(frames["line_rate_bps"]) for stream, frames in streams(run.plan).items()}


def path_rates(run: Run) -> dict[str, int]:
    """Returns the lowest requested rate on the path of each stream, in bit/s; streams without one are left
    out.
    """
    return {s: int(f["path_rate_bps"]) for s, f in streams(run.plan).items() if f.get("path_rate_bps")}


def trial_metrics(run: Run) -> list[Metric]:
    """Returns throughput, back-to-back frames, latency and frame loss for each stream and frame size; empty
    without trials. Streams between two clocks have no latency.
    """
    trials, findings = run.table("trials"), run.table("findings")
    if trials is None:
        return []
    found: list[Metric] = []
    for (stream, size), rows in trials.group_by("stream", "size", maintain_order=True):
        of = Of(stream=str(stream), frame_bytes=int(size))
        if findings is not None:
            ended = findings.filter((pl.col("stream") == stream) & (pl.col("size") == size))
            line = line_fps(int(size), line_rates(run)[str(stream)])
            found += _throughput(of, int(size), line, ended, rows)
            found += _bursts(of, ended)
        if one_clock(run.plan, str(stream)):
            found += _latency(run, of, rows.filter(pl.col("test") == "latency"))
        found += _loss(of, rows.filter(pl.col("test") == "frame-loss"))
    return found


def _throughput(of: Of, size: int, line: float, ended: pl.DataFrame, rows: pl.DataFrame) -> list[Metric]:
    of_test = ended.filter(pl.col("test") == "throughput")
    if of_test.is_empty():
        return []
    fps, n = float(of_test.item(0, "value")), rows.filter(pl.col("test") == "throughput").height
    limit = str(of_test.item(0, "limit"))
    method = f"highest rate without loss; limited by the {limit}; n is trials"
    top = float(of_test.item(0, "top_fps"))
    found = [
        count("throughput", of, fps, "frames/s", n, method),
        count("throughput_bits", of, fps * size * 8 / 1e6, "Mbit/s", n, method),
        count("throughput_of_line", of, 100 * fps / line, "% of the theoretical maximum", n, method),
    ]
    highest = count("offered_at_most", of, top, "frames/s", n, "highest rate offered")
    return [*(replace(m, limits=(limit,)) for m in found), highest]


def _bursts(of: Of, ended: pl.DataFrame) -> list[Metric]:
    rows = ended.filter(pl.col("test") == "back-to-back")
    if rows.is_empty():
        return []
    spread = t_interval(rows.get_column("value").to_list(), "search")
    limits = tuple(rows.get_column("limit").unique().sort().to_list())
    method = f"{spread.method}; limited by the {' and the '.join(limits)}"
    return [replace(metric("back_to_back", of, "frames", replace(spread, method=method)), limits=limits)]


def _latency(run: Run, of: Of, rows: pl.DataFrame) -> list[Metric]:
    """Returns the mean of one tagged frame in each trial (RFC 2544), and percentiles and maximum of all
    frames, in us; empty without recorded latencies.
    """
    found = []
    tagged = rows.get_column("tagged_ns").drop_nulls().to_list()
    if tagged:
        found.append(metric("latency_tagged", of, "us", t_interval(tagged, "tagged frame"), 1e-3))
    spread = buckets(run, rows)
    if not spread.is_empty():
        total = int(spread.get_column("frames").sum())
        for at, q in QUANTILES.items():
            value = quantile(spread, q)
            found.append(metric(f"latency_{at}", of, "us", Estimate(value, total, None, None, METHOD), 1e-3))
        worst = float(rows.get_column("latency_max_ns").max() or 0)  # type: ignore[arg-type]  # an integer
        found.append(count("latency_max", of, worst * 1e-3, "us", total, "largest"))
    return found


def _loss(of: Of, rows: pl.DataFrame) -> list[Metric]:
    """Returns the share of frames lost at the highest load; empty if no frame was sent there."""
    if rows.is_empty():
        return []
    first = rows.sort("rate_fps", descending=True).row(0, named=True)
    if not first["sent"]:
        return []
    share = 100 * first["lost"] / first["sent"]
    method = f"at {first['offered_fps'] or 0:,.0f} frames/s, the highest load"
    return [count("frame_loss", of, share, "%", int(first["sent"]), method)]


def buckets(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the latency buckets of the given trials added up and sorted: from_ns, to_ns, frames; empty if
    the run has none.
    """
    table = run.table("latencies")
    if table is None:
        return pl.DataFrame(schema={"from_ns": pl.Int64, "to_ns": pl.Int64, "frames": pl.Int64})
    chosen = table.filter(pl.col("trial").is_in(rows.get_column("trial").to_list()))
    return chosen.group_by("from_ns", "to_ns").agg(pl.col("frames").sum()).sort("from_ns")


def quantile(spread: pl.DataFrame, q: float) -> float:
    """Returns the middle of the bucket that contains the q-quantile, in ns; `spread` has the columns of
    `buckets` and at least one row.
    """
    reached = spread.with_columns(done=pl.col("frames").cum_sum())
    total = reached.item(-1, "done")
    row = reached.filter(pl.col("done") >= q * total).row(0, named=True)
    return float(row["from_ns"] + row["to_ns"] - 1) / 2
