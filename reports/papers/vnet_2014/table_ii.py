"""Makes table II: the mean CPU of a publishing node and of the host at each QoS level, measured beside
published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from reports.claims.document import read_claims
from reports.claims.evidence import Evidence
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, PALETTE
from reports.numbers import plus_minus
from reports.papers.paper import Table
from reports.papers.published import reference
from reports.study import Study

ROOM = Path(__file__).parent
# the paper's table II is "the average CPU usage for a publishing node", and of the VM host
SOURCES = {"node": "publisher_cpu", "host": "host_cpu"}
SCHEMA = {
    "qos": pl.Int64,
    "of": pl.String,
    "source": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
Y_TITLE = "CPU, % of its value at QoS 0"
SOURCE_COLOUR = alt.Color(
    "source:N", scale=alt.Scale(domain=["measured", "paper"], range=[PALETTE[0], "#A9B4BF"]), title=None
)


def published() -> dict[int, dict[str, float]]:
    """Returns the printed mean CPU in % of "node" and "host", by QoS level."""
    rows = reference(ROOM)["mqtt_scenarios"]["table_ii_cpu_percent"]
    return {int(name.removeprefix("qos")): dict(values) for name, values in rows.items()}


def rows(study: Study) -> pl.DataFrame:
    """Returns the columns qos, of (node or host), source (measured or paper), value (%), low, high, relative
    (% of the value at QoS 0, or null without it); CannotDrawError without measured values.
    """
    claims = read_claims(ROOM / "claims.yaml")
    evidence = Evidence(study, claims.factor)
    found: list[tuple[Any, ...]] = []
    for of, name in SOURCES.items():
        for level in claims.factor.levels:
            if (v := evidence.value(claims.quantities[name], level)) is not None:
                found.append((level, of, "measured", v.value, v.low, v.high))
    if not found:
        raise CannotDrawError("needs a run of scenario 1 with a hold and node samples")
    for qos, values in published().items():
        found += [(qos, of, "paper", values[of], None, None) for of in SOURCES]
    frame = pl.DataFrame(found, schema=SCHEMA, orient="row")
    base = frame.filter(pl.col("qos") == 0).select("of", "source", base="value")
    joined = frame.join(base, on=["of", "source"], how="left")
    return (
        joined.with_columns(relative=100 * pl.col("value") / pl.col("base"))
        .drop("base")
        .sort("of", "source", "qos")
    )


def tables(study: Study) -> tuple[Table, ...]:
    """Returns table II with the published values; empty without measured values of scenario 1."""
    try:
        known = {(r["qos"], r["of"], r["source"]): _text(r) for r in rows(study).iter_rows(named=True)}
    except CannotDrawError:
        return ()
    levels = sorted({qos for qos, _, _ in known})
    columns = [("node", "measured"), ("node", "paper"), ("host", "measured"), ("host", "paper")]
    return (
        Table(
            "table-ii",
            "Mean CPU over the hold, beside the values the paper printed. Its machine was another (VMware "
            "ESXi 5.1 on an AMD FX-8120), so compare the growth, not the level.",
            ("QoS", "publishing node, % of a core", "paper", "host, % of the machine", "paper"),
            tuple(
                (str(qos), *(known.get((qos, of, source), "") for of, source in columns)) for qos in levels
            ),
            printed=(2, 4),
        ),
    )


def _text(row: dict[str, Any]) -> str:
    if row["source"] == "paper":
        return f"{row['value']:.3f}" if row["of"] == "node" else f"{row['value']:.1f}"
    return plus_minus(row["value"], row["low"], row["high"])


def data(study: Study) -> pl.DataFrame:
    """Returns the rows of `rows` with the labels of the chart; CannotDrawError if the node's CPU was not
    measured at QoS 0 and a second level.
    """
    found = rows(study)
    measured = found.filter((pl.col("source") == "measured") & (pl.col("of") == "node"))
    if measured.height < 2 or measured.get_column("relative").null_count():
        raise CannotDrawError("the growth needs runs of scenario 1 at QoS 0 and at least one more level")
    return found.with_columns(
        pl.col("of").replace({"node": "mean publisher", "host": "whole host"}),
        level=pl.format("QoS {}", "qos"),
    )


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws CPU relative to QoS 0, measured beside published."""
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


SPEC = Spec(
    "table-ii",
    "Table II. CPU of nodes and host",
    "CPU relative to QoS 0, so that machines of different speed compare; the numbers on the bars are "
    "the CPU in % (nodes: of a core; host: of the machine).",
    data,
    chart,
    ("table-ii-node", "table-ii-host"),
)
