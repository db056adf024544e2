"""Draws two graphs of RFC 2544: latency by frame size, and frame loss rate against offered load."""

from __future__ import annotations

import altair as alt
import polars as pl

from capture.ethernet import line_fps
from capture.trials import label, one_clock
from reports.figures.spec import AnyChart, CannotDrawError
from reports.figures.theme import HALF, WIDTH, colour, log_ticks, marker
from reports.metrics.trials import buckets, line_rates, quantile
from reports.study import Study

SHOWN = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SIZE_TITLE = "frame size with FCS, bytes"


def size_axis(rows: pl.DataFrame) -> alt.X:
    """Returns an x axis of frame sizes with equal steps between them."""
    sizes = sorted(set(rows.get_column("size").to_list()))
    return alt.X("size:O", title=SIZE_TITLE, sort=sizes, axis=alt.Axis(labelAngle=0))


def latency_data(study: Study) -> pl.DataFrame:
    """Returns the columns series, stream, size, percentile, latency_us, over all frames of the latency trials
    of a condition; streams between two clocks are left out. CannotDrawError if no frame remains.
    """
    spread: dict[tuple[str, str, int], list[pl.DataFrame]] = {}
    for cell in study.cells:
        table = cell.run.table("trials")
        if table is None:
            continue
        rows = table.filter((pl.col("test") == "latency") & (pl.col("received") > 0))
        for (stream, size), of_size in rows.group_by("stream", "size", maintain_order=True):
            if not one_clock(cell.run.plan, str(stream)):
                continue
            key = (cell.series, str(stream), int(size))
            spread.setdefault(key, []).append(buckets(cell.run, of_size))
    found = []
    for (series, stream, size), parts in spread.items():
        joined = pl.concat(parts).group_by("from_ns", "to_ns").agg(pl.col("frames").sum()).sort("from_ns")
        found += [(series, stream, size, at, quantile(joined, q) / 1e3) for at, q in SHOWN.items()]
    if not found:
        raise CannotDrawError("needs latency trials at a throughput above zero, between nodes of one kernel")
    schema = ["series", "stream", "size", "percentile", "latency_us"]
    return pl.DataFrame(found, schema=schema, orient="row").sort("series", "size", "percentile")


def latency_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws median, 90th and 99th percentile of the latency by frame size, one column for each condition."""
    scale, axis = log_ticks(frame, "latency_us")
    base = alt.Chart(frame).encode(
        x=size_axis(frame),
        y=alt.Y("latency_us:Q", title="latency at the throughput, µs", scale=scale, axis=axis),
        color=colour(list(SHOWN), field="percentile"),
        shape=marker(list(SHOWN), field="percentile"),
    )
    several = frame.get_column("series").n_unique() > 1
    both = alt.layer(base.mark_line(strokeWidth=1.6), base.mark_point(size=70))
    sized = both.properties(width=HALF if several else WIDTH, height=280)
    return sized.facet(column=alt.Column("series:N", title=None)) if several else sized


def loss_data(study: Study) -> pl.DataFrame:
    """Returns the columns series, stream, size, curve, load (% of the theoretical maximum), loss (%), for
    each frame loss trial that sent frames; CannotDrawError without one.

    The load is the offered one if it is recorded, else the requested one.
    """
    found = []
    for cell in study.cells:
        table = cell.run.table("trials")
        rows = (
            None if table is None else table.filter((pl.col("test") == "frame-loss") & (pl.col("sent") > 0))
        )
        for r in [] if rows is None else rows.iter_rows(named=True):
            line = line_fps(r["size"], line_rates(cell.run)[r["stream"]])
            load = 100 * (r["offered_fps"] or r["rate_fps"]) / line
            curve = label(r["stream"], r["size"], len(line_rates(cell.run)))
            found.append((cell.series, r["stream"], r["size"], curve, load, 100 * r["lost"] / r["sent"]))
    if not found:
        raise CannotDrawError("needs frame loss trials")
    schema = ["series", "stream", "size", "curve", "load", "loss"]
    return pl.DataFrame(found, schema=schema, orient="row").sort("series", "stream", "size", "load")


def loss_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws frame loss against offered load, one curve for each stream and size, one column for
    each condition.
    """
    sizes = frame.sort("stream", "size").get_column("curve").unique(maintain_order=True).to_list()
    highest = max(1.0, float(frame.get_column("loss").max() or 0.0))  # type: ignore[arg-type]  # a float
    base = alt.Chart(frame).encode(
        x=alt.X("load:Q", title="offered load, % of the theoretical maximum", scale=alt.Scale(zero=True)),
        y=alt.Y("loss:Q", title="frames lost, %", scale=alt.Scale(domain=[0, highest])),
        color=colour(sizes, field="curve"),
        shape=marker(sizes, field="curve"),
        detail="series:N",
    )
    several = frame.get_column("series").n_unique() > 1
    both = alt.layer(base.mark_line(strokeWidth=1.4), base.mark_point(size=45))
    sized = both.properties(width=HALF if several else WIDTH, height=280)
    return sized.facet(column=alt.Column("series:N", title=None)) if several else sized
