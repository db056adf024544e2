"""Draws figures 14 and 15: packet sizes in Wireshark's bins, and the share of the traffic that is payload."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from reports.claims.document import read_claims
from reports.claims.evidence import Level
from reports.figures.captured import capture_of, sizes_chart, sizes_data
from reports.figures.spec import AnyChart, Spec
from reports.figures.theme import HALF, HALO, INK, WIDTH, colour
from reports.study import Study

GOODPUT = {
    "goodput_packets": "packets",
    "goodput_bytes": "bytes, TCP",
    "application_bytes": "bytes, messages",
}
# Section III-C of the paper: "only 30% of packets actually had a data payload", at QoS 1.
PUBLISHED: dict[tuple[str, str, Level | None], float] = {("goodput_packets", "scenario 1", 1): 30.0}
ROOM = Path(__file__).parent


def goodput_data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, capture, measure, value (%), low, high, published (the paper's
    value, or null), repetitions, for the capture point with most packets; CannotDrawError without captures.
    """
    table = study.compared
    point = capture_of(table)
    rows = table.filter((pl.col("capture") == point) & pl.col("name").is_in(list(GOODPUT)))
    factor = read_claims(ROOM / "claims.yaml").factor
    level = {(cell.scenario, cell.series): factor.level_of(cell) for cell in study.cells}
    published = [
        PUBLISHED.get((r["name"], r["scenario"], level[r["scenario"], r["series"]]))
        for r in rows.iter_rows(named=True)
    ]
    return rows.with_columns(
        pl.col("name").replace(GOODPUT).alias("measure"),
        pl.Series("published", published, dtype=pl.Float64),
    ).select("scenario", "series", "capture", "measure", "value", "low", "high", "published", "repetitions")


def goodput_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one group of bars for each measure, with a black tick at the published value."""
    scenarios = frame.get_column("scenario").n_unique()
    order = [name for name in GOODPUT.values() if name in set(frame.get_column("measure").to_list())]
    axis = alt.Axis(labelAngle=0)
    base = alt.Chart(frame).encode(
        x=alt.X("measure:N", sort=order, title=None, axis=axis),
        xOffset=alt.XOffset("series:N", sort=study.series),
    )
    y = "share that carries or is payload, %"
    bars = base.mark_bar().encode(
        y=alt.Y("value:Q", title=y, scale=alt.Scale(domain=[0, 100])), color=colour(study.series)
    )
    whiskers = base.mark_rule(color=INK).encode(y=alt.Y("low:Q", title=y), y2="high:Q")
    width = WIDTH if scenarios == 1 else HALF
    paper = base.transform_filter("isValid(datum.published)").encode(y=alt.Y("published:Q", title=y))
    size = width // (4 * max(1, len(order)))
    ticks = [paper.mark_tick(color=c, thickness=t, size=size) for c, t in ((HALO, 6), (INK, 3))]
    layered = alt.layer(bars, whiskers, *ticks).properties(width=width, height=280)
    return layered.facet(column=alt.Column("scenario:N", title=None))


SPECS = (
    Spec(
        "figure-14",
        "Figure 14. Packet sizes",
        "Share of the packets captured in the hold by frame length, in the bins of Wireshark's statistics.",
        sizes_data,
        sizes_chart,
        ("tcp-overhead", "small-packets", "arp-share", "publish-bin"),
    ),
    Spec(
        "figure-15",
        "Figure 15. Goodput",
        "Packets: share with a TCP payload longer than zero. Bytes, TCP: TCP payload by frame bytes. Bytes, "
        "messages: their own payload (once per hop) by frame bytes. Line across a bar: the paper's value.",
        goodput_data,
        goodput_chart,
        ("goodput-qos1",),
    ),
)
