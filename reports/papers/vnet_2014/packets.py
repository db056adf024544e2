"""Figures 14 and 15: packet sizes in Wireshark's bins, and how much of the traffic carries payload."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from reports.claims.document import read_claims
from reports.claims.evidence import Level
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, HALO, INK, WIDTH, colour
from reports.metrics.compare import called
from reports.metrics.sizes import BIN_NAMES
from reports.study import Study

NEEDS = "needs a reduced capture (packets/POINT.parquet)"
GOODPUT = {
    "goodput_packets": "packets",
    "goodput_bytes": "bytes, TCP",
    "application_bytes": "bytes, messages",
}
# section III-C of the paper: "only 30% of packets actually had a data payload", at QoS 1
PUBLISHED: dict[tuple[str, str, Level | None], float] = {("goodput_packets", "scenario 1", 1): 30.0}
ROOM = Path(__file__).parent


def capture_of(table: pl.DataFrame) -> str:
    """The capture point that the packet figures show: the one that saw most packets."""
    seen = table.filter(pl.col("name") == "packets").sort("value", descending=True)
    if seen.is_empty():
        raise CannotDrawError(NEEDS)
    return str(seen.item(0, "capture"))


def sizes_data(study: Study) -> pl.DataFrame:
    """Rows scenario, series, bin, value (% of packets), low, high; empty bins at the end are cut."""
    table = study.compared
    point = capture_of(table)
    rows = table.filter(called("packet_size", capture=point))
    used = rows.filter(pl.col("value") > 0).get_column("bin").unique().to_list()
    last = max(BIN_NAMES.index(b) for b in used)
    return rows.filter(pl.col("bin").is_in(BIN_NAMES[: last + 1])).select(
        "scenario", "series", "capture", "bin", "value", "low", "high", "repetitions"
    )


def sizes_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Grouped bars, one group a bin, one bar a QoS level."""
    bins = [b for b in BIN_NAMES if b in set(frame.get_column("bin").to_list())]
    scenarios = frame.get_column("scenario").n_unique()
    base = alt.Chart(frame).encode(
        x=alt.X("bin:N", sort=bins, title="packet size on the wire, bytes", axis=alt.Axis(labelAngle=-35)),
        xOffset=alt.XOffset("series:N", sort=study.series),
    )
    bars = base.mark_bar().encode(y=alt.Y("value:Q", title="share of packets, %"), color=colour(study.series))
    whiskers = base.mark_rule(color=INK).encode(y=alt.Y("low:Q", title="share of packets, %"), y2="high:Q")
    layered = alt.layer(bars, whiskers).properties(width=WIDTH if scenarios == 1 else HALF, height=280)
    return layered.facet(column=alt.Column("scenario:N", title=None))


def goodput_data(study: Study) -> pl.DataFrame:
    """Rows scenario, series, measure, value (%), low, high, published (the paper's, else null)."""
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
    """One group of bars a measure; a black tick is the published value."""
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
