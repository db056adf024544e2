"""Table II as a figure, and the QoS levels side by side in the quantities that matter."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, PALETTE, colour
from reports.metrics.compare import compare
from reports.reference import table_ii
from reports.study import Study

MEASURES = {
    ("cpu", "broker"): "broker CPU, % of a core",
    ("received", "broker"): "broker receives, kB/s",
    ("sent", "broker"): "broker sends, kB/s",
    ("latency_p50", "QoS"): "latency p50, ms",
    ("latency_p99", "QoS"): "latency p99, ms",
}
# the paper's table II is "the average CPU usage for a publishing node", and of the VM host
SOURCES = {"node": ("cpu", "publisher"), "host": ("host_busy", None)}


Y_TITLE = "CPU, % of its value at QoS 0"
SOURCE_COLOUR = alt.Color(
    "source:N", scale=alt.Scale(domain=["measured", "paper"], range=[PALETTE[0], "#A9B4BF"]), title=None
)


def table_ii_rows(study: Study) -> pl.DataFrame:
    """Rows qos, of (node, host), source (measured, paper), value (%), low, high, relative (% of QoS 0)."""
    table = compare(study).filter(pl.col("scenario") == "scenario 1")
    rows: list[tuple[int, str, str, float, float | None, float | None]] = []
    for of, (name, scope) in SOURCES.items():
        found = table.filter(pl.col("name") == name)
        scope = scope or ("outer" if "outer" in found.get_column("scope") else "lab")
        for r in found.filter(pl.col("scope") == scope).unique("qos").sort("qos").iter_rows(named=True):
            rows.append((r["qos"], of, "measured", r["value"], r["low"], r["high"]))
    if not rows:
        raise CannotDrawError("needs a run of scenario 1 with a hold and node samples")
    for qos, values in table_ii().items():
        rows += [(qos, of, "paper", values[of], None, None) for of in SOURCES]
    schema = ["qos", "of", "source", "value", "low", "high"]
    frame = pl.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None)
    base = frame.filter(pl.col("qos") == 0).select("of", "source", base="value")
    joined = frame.join(base, on=["of", "source"], how="left")
    return (
        joined.with_columns(relative=100 * pl.col("value") / pl.col("base"))
        .drop("base")
        .sort("of", "source", "qos")
    )


def table_ii_data(study: Study) -> pl.DataFrame:
    """table_ii_rows where the growth over QoS can be shown."""
    rows = table_ii_rows(study)
    measured = rows.filter((pl.col("source") == "measured") & (pl.col("of") == "node"))
    if measured.height < 2 or measured.get_column("relative").null_count():
        raise CannotDrawError("the growth needs runs of scenario 1 at QoS 0 and at least one more level")
    return rows.with_columns(
        pl.col("of").replace({"node": "mean publisher", "host": "whole host"}),
        level=pl.format("QoS {}", "qos"),
    )


def table_ii_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """CPU relative to QoS 0, measured beside published."""
    y = alt.Y("relative:Q", title=Y_TITLE)
    low, high = "datum.low / datum.value * datum.relative", "datum.high / datum.value * datum.relative"
    top = "isValid(datum.high) ? datum.to : datum.relative"
    base = (
        alt.Chart(frame)
        .transform_calculate(from_=low, to=high)
        .transform_calculate(top=top)
        .encode(
            x=alt.X("level:N", title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("source:N", sort=["measured", "paper"]),
        )
    )
    bars = base.mark_bar().encode(y=y, color=SOURCE_COLOUR)
    text = base.mark_text(dy=-9, color=INK, fontSize=11).encode(
        y=alt.Y("top:Q", title=Y_TITLE), text=alt.Text("value:Q", format=".3~g")
    )
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(color=INK)
        .encode(y=alt.Y("from_:Q", title=Y_TITLE), y2="to:Q")
    )
    return (
        alt.layer(bars, whiskers, text)
        .properties(width=HALF, height=250)
        .facet(column=alt.Column("of:N", title=None))
    )


def comparison_data(study: Study) -> pl.DataFrame:
    """Rows scenario, series, measure, value, low, high, repetitions."""
    if len(study.series) < 2:
        raise CannotDrawError("needs runs at two levels at least; this page has one")
    table = compare(study)
    parts = [
        table.filter((pl.col("name") == name) & (pl.col("scope") == scope)).with_columns(
            measure=pl.lit(title)
        )
        for (name, scope), title in MEASURES.items()
    ]
    rows = pl.concat(parts)
    if rows.is_empty():
        raise CannotDrawError("needs a hold with node samples or messages")
    return rows.select("scenario", "series", "measure", "value", "low", "high", "repetitions")


def comparison_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Small multiples: a column a measure, a row a scenario."""
    base = alt.Chart(frame).encode(x=alt.X("series:N", title=None, axis=alt.Axis(labelAngle=-35)))
    bars = base.mark_bar().encode(y=alt.Y("value:Q", title=None), color=colour(study.series).legend(None))
    whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    order = [m for m in MEASURES.values() if m in set(frame.get_column("measure").to_list())]
    header = alt.Header(labelLimit=190, labelFontSize=12)
    faceted = (
        alt.layer(bars, whiskers)
        .properties(width=118, height=170)
        .facet(
            column=alt.Column("measure:N", sort=order, title=None, header=header),
            row=alt.Row("scenario:N", title=None),
        )
    )
    independent: AnyChart = faceted.resolve_scale(y="independent")
    return independent


SPECS = (
    Spec(
        "table-ii",
        "Table II. CPU of nodes and host",
        "CPU relative to QoS 0, so that machines of different speed compare; the numbers on the bars are "
        "the CPU in % (nodes: of a core; host: of the machine).",
        table_ii_data,
        table_ii_chart,
        ("table-ii-node", "table-ii-host"),
    ),
    Spec(
        "comparison",
        "The levels side by side",
        "Means of the hold with 95 % intervals.",
        comparison_data,
        comparison_chart,
        wide=True,
    ),
)
