"""Draws the graphs of RFC 2544: throughput, latency, frame loss and back-to-back frames."""

from __future__ import annotations

import altair as alt
import polars as pl

from capture.ethernet import line_fps, shaped_fps
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, MUTED, WIDTH, colour, log_ticks, marker
from reports.figures.trial_curves import latency_chart, latency_data, loss_chart, loss_data, size_axis
from reports.metrics.trials import line_rates, path_rates
from reports.study import Study

MAXIMUM, REQUESTED = "theoretical maximum", "requested rate of the links"
UNITS = {"throughput": "frames/s", "throughput_bits": "Mbit/s"}


def throughput_data(study: Study) -> pl.DataFrame:
    """Returns the columns series, stream, size, unit, value, low, high of the measured throughputs, and of
    the theoretical maximum and the requested rate of the links as further series; CannotDrawError without
    throughput trials.
    """
    table = study.compared.filter(pl.col("name").is_in(list(UNITS)))
    if table.is_empty():
        raise CannotDrawError("needs throughput trials (findings.parquet)")
    rows = table.select(
        "series",
        "stream",
        pl.col("frame_bytes").alias("size"),
        pl.col("name").replace(UNITS).alias("unit"),
        "value",
        "low",
        "high",
    )
    return pl.concat([rows, _expected(study)]).sort("series", "size")


def _expected(study: Study) -> pl.DataFrame:
    """Returns the theoretical maximum for each frame size and, if the topology requests rates, the requested
    rate of the links, in both units and without intervals.
    """
    found: dict[tuple[str, int], float] = {}
    lines = {rate for cell in study.cells for rate in line_rates(cell.run).values()}
    paths = {rate for cell in study.cells for rate in path_rates(cell.run).values()}
    for cell in study.cells:
        table = cell.run.table("trials")
        sizes = [] if table is None else sorted(set(table.get_column("size").to_list()))
        for size in sizes:
            for rate in line_rates(cell.run).values():
                found[_named(MAXIMUM, rate, lines), size] = line_fps(size, rate)
            for rate in path_rates(cell.run).values():
                found[_named(REQUESTED, rate, paths), size] = shaped_fps(size, rate)
    rows = [
        (series, None, size, unit, fps if unit == "frames/s" else fps * size * 8 / 1e6, None, None)
        for (series, size), fps in found.items()
        for unit in UNITS.values()
    ]
    schema = {"series": pl.String, "stream": pl.String, "size": pl.Int64, "unit": pl.String}
    schema_of_values = dict.fromkeys(("value", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema={**schema, **schema_of_values}, orient="row")


def _named(what: str, rate: int, rates: set[int]) -> str:
    """Returns the name of a curve, with its rate if the study has several rates."""
    return what if len(rates) == 1 else f"{what}, {rate / 1e6:g} Mbit/s"


def throughput_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws frames/s on a logarithmic axis beside Mbit/s on a linear one, without zeros; CannotDrawError if
    all values are zero.
    """
    series = _ordered(frame)
    parts = []
    for unit in UNITS.values():
        rows = frame.filter((pl.col("unit") == unit) & (pl.col("value") > 0))
        if rows.is_empty():
            continue
        scale, axis = log_ticks(rows, "value") if unit == "frames/s" else (alt.Scale(zero=True), alt.Axis())
        y = alt.Y("value:Q", title=unit, scale=scale, axis=axis)
        parts.append(_by_size(rows, unit, y, series).properties(width=HALF, height=280))
    if not parts:
        raise CannotDrawError("no frame passed at any rate")
    return alt.hconcat(*parts)  # type: ignore[return-value]  # a chart like the others


def _by_size(rows: pl.DataFrame, unit: str, y: alt.Y, series: list[str]) -> AnyChart:
    base = alt.Chart(rows).encode(x=size_axis(rows), y=y, color=colour(series), shape=marker(series))
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule()
    return alt.layer(
        base.mark_line(strokeWidth=1.6),
        base.mark_point(size=70),
        whiskers.encode(y=alt.Y("low:Q", title=unit), y2="high:Q"),
    )


def _ordered(frame: pl.DataFrame) -> list[str]:
    """Returns the names of the series, measured ones before expected ones."""
    names = sorted(set(frame.get_column("series").to_list()))
    return sorted(names, key=lambda name: (name.startswith((MAXIMUM, REQUESTED)), name))


def burst_data(study: Study) -> pl.DataFrame:
    """Returns the columns series, stream, size, value (frames), low, high of the longest burst without loss;
    CannotDrawError without back-to-back trials.
    """
    table = study.compared.filter(pl.col("name") == "back_to_back")
    if table.is_empty():
        raise CannotDrawError("needs back-to-back trials (findings.parquet)")
    return table.select("series", "stream", pl.col("frame_bytes").alias("size"), "value", "low", "high").sort(
        "series", "size"
    )


def burst_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the longest burst without loss by frame size, with its intervals."""
    series = _ordered(frame)
    y = alt.Y("value:Q", title="longest burst without loss, frames", scale=alt.Scale(zero=True))
    base = alt.Chart(frame).encode(x=size_axis(frame), xOffset=alt.XOffset("series:N", sort=series))
    bars = base.mark_bar().encode(y=y, color=colour(series))
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(color=INK)
    text = base.mark_text(dy=-9, color=MUTED, fontSize=11).encode(
        y=y, text=alt.Text("value:Q", format=",.0f")
    )
    return alt.layer(
        bars, whiskers.encode(y=alt.Y("low:Q", title="longest burst without loss, frames"), y2="high:Q"), text
    ).properties(width=WIDTH, height=280)


SPECS = (
    Spec(
        "rfc2544-throughput",
        "Throughput",
        "The highest rate at which no frame was lost or queued (RFC 2544, section 26.1). The theoretical "
        "maximum follows from the line rate in the file: a frame takes 20 bytes beside its own.",
        throughput_data,
        throughput_chart,
    ),
    Spec(
        "rfc2544-latency",
        "Latency",
        "Percentiles of all frames at the throughput, from the stamp before sending to that of the receiving "
        "kernel. Section 26.2 reports one tagged frame of each trial; the table above has it.",
        latency_data,
        latency_chart,
    ),
    Spec(
        "rfc2544-frame-loss",
        "Frame loss rate",
        "From the highest load of the generator downwards, until two loads in a row lose nothing (section "
        "26.3).",
        loss_data,
        loss_chart,
    ),
    Spec(
        "rfc2544-back-to-back",
        "Back-to-back frames",
        "The longest burst at the generator's full speed without loss (section 26.4); means of the searches "
        "with 95 % intervals.",
        burst_data,
        burst_chart,
    ),
)
