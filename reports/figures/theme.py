"""Defines the style of all figures: colours for colour-blind readers, fonts, sizes, axes."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

INK, MUTED, GRID = "#1f2933", "#5b6875", "#e3e8ee"
# Okabe and Ito's palette (Color Universal Design, 2008), the first three of different lightness
PALETTE = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#6F6F6F", "#A6761D")
SHAPES = ("circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right", "stroke", "arrow")
DASHES = ([1, 0], [6, 4], [2, 2], [8, 3, 2, 3])
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH, HALF, HEIGHT = 760, 365, 320  # HALF: each of two plots side by side
EVENT, HALO = "#A03050", "#ffffff"
FEWEST_TICKS, MOST_TICKS = 3, 9


def colour(series: list[str], title: str | None = None, field: str = "series") -> alt.Color:
    """Returns the encoding of the series as colour; the same position in `series` always has the same colour,
    and colours repeat after the eighth.
    """
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=series, range=_of(PALETTE, series)), title=title)


def marker(series: list[str], title: str | None = None, field: str = "series") -> alt.Shape:
    """Returns the encoding of the series as point shape, so that curves differ in more than colour; shapes
    repeat after the eighth.
    """
    return alt.Shape(f"{field}:N", scale=alt.Scale(domain=series, range=_of(SHAPES, series)), title=title)


def dash(values: list[str], title: str | None = None, field: str = "quantity") -> alt.StrokeDash:
    """Returns the encoding of a second variable, such as the direction, as dash pattern; patterns repeat
    after the fourth.
    """
    scale = alt.Scale(domain=values, range=_of(DASHES, values))
    return alt.StrokeDash(f"{field}:N", scale=scale, title=title, legend=alt.Legend(symbolSize=400))


def log_ticks(frame: pl.DataFrame, column: str) -> tuple[alt.Scale, alt.Axis]:
    """Returns a logarithmic scale that fits the column's positive values, and an axis with 3 to 9 ticks: at
    1, 2, 5 of each decade, at each digit, evenly spaced, or at decades only.
    """
    values = frame.filter(pl.col(column) > 0).get_column(column)
    low, high = float(values.min() or 1.0), float(values.max() or 1.0)  # type: ignore[arg-type]  # a float column
    low, high = low / 1.15, high * 1.15
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(ticks) < FEWEST_TICKS:
        ticks = [m * 10.0**k for k in decades for m in range(1, 10) if low <= m * 10.0**k <= high]
    if len(ticks) < FEWEST_TICKS:  # the values span less than a decade, so ticks are evenly spaced
        unit = 10.0 ** math.floor(math.log10(high - low))
        step = next(m * unit for m in (0.2, 0.5, 1, 2) if (high - low) / (m * unit) < MOST_TICKS - 1)
        ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if len(ticks) > MOST_TICKS:
        ticks = [10.0**k for k in decades if low <= 10.0**k <= high]
    return alt.Scale(type="log", domain=[low, high], nice=False), alt.Axis(values=ticks, format="~g")


def _of(values: Any, series: list[str]) -> list[Any]:
    return [values[i % len(values)] for i in range(len(series))]


def finish(chart: alt.TopLevelMixin, description: str, checked: bool) -> dict[str, Any]:
    """Returns the chart as a Vega-Lite definition in the common style, with `description` as the text for
    screen readers; with `checked`, validated against the schema.
    """
    spec: dict[str, Any] = chart.to_dict(validate=checked)
    spec["description"] = description
    spec["config"] = _config()
    return spec


def _config() -> dict[str, Any]:
    axis = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": 600,
        "labelColor": MUTED,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "titlePadding": 10,
        "labelLimit": 220,
    }
    legend = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "orient": "top",
        "labelColor": INK,
        "titleColor": MUTED,
        "symbolStrokeWidth": 2,
        "direction": "horizontal",
        "labelLimit": 320,
        "symbolSize": 90,
        "columnPadding": 18,
        "titleOrient": "left",
        "offset": 10,
    }
    header = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 13,
        "labelFontWeight": 600,
        "labelColor": INK,
    }
    return {
        "background": "white",
        "font": FONT,
        "padding": 8,
        "axis": axis,
        "legend": legend,
        "header": header,
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
        "line": {"strokeWidth": 2},
        "point": {"filled": True},
        "axisX": {"grid": False},
    }
