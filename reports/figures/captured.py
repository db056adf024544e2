"""Draws captured packets: their sizes, the bytes of each protocol layer, and the throughput over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, PALETTE, WIDTH, colour, dash
from reports.metrics.compare import called
from reports.metrics.hierarchy import LAYERS
from reports.metrics.sizes import BIN_NAMES
from reports.metrics.throughput import throughput
from reports.study import Study

NEEDS = "needs a reduced capture (packets/POINT.parquet)"
KINDS = ("on the wire", "payload", "retransmissions")
MOST_POINTS = 4


def capture_of(table: pl.DataFrame) -> str:
    """Returns the capture point for the figures about packets: the one with most packets in a run;
    CannotDrawError without captures.
    """
    seen = table.filter(pl.col("name") == "packets").sort("value", descending=True)
    if seen.is_empty():
        raise CannotDrawError(NEEDS)
    return str(seen.item(0, "capture"))


def sizes_data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, capture, bin, value (% of packets), low, high, repetitions, for
    the capture point with most packets; without the empty bins after the last used one.
    """
    point = capture_of(study.compared)
    rows = study.compared.filter(called("packet_size", capture=point))
    used = rows.filter(pl.col("value") > 0).get_column("bin").unique().to_list()
    last = max(BIN_NAMES.index(b) for b in used)
    shown = rows.filter(pl.col("bin").is_in(BIN_NAMES[: last + 1]))
    return shown.select("scenario", "series", "capture", "bin", "value", "low", "high", "repetitions")


def sizes_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws grouped bars: one group for each size bin, one bar for each series."""
    bins = [b for b in BIN_NAMES if b in set(frame.get_column("bin").to_list())]
    scenarios = frame.get_column("scenario").n_unique()
    base = alt.Chart(frame).encode(
        x=alt.X("bin:N", sort=bins, title="packet size on the wire, bytes", axis=alt.Axis(labelAngle=-35)),
        xOffset=alt.XOffset("series:N", sort=study.series),
    )
    several = len(study.series) > 1
    fill = colour(study.series) if several else alt.value(PALETTE[0])
    bars = base.mark_bar().encode(y=alt.Y("value:Q", title="share of packets, %"), color=fill)
    whiskers = base.mark_rule(color=INK).encode(y=alt.Y("low:Q", title="share of packets, %"), y2="high:Q")
    layered = alt.layer(bars, whiskers).properties(width=WIDTH if scenarios == 1 else HALF, height=280)
    return layered if scenarios == 1 else layered.facet(column=alt.Column("scenario:N", title=None))


def layers_data(study: Study) -> pl.DataFrame:
    """Returns the columns condition, layer, place (order of the layers, outermost first), value (% of frame
    bytes), for the capture point with most packets; CannotDrawError without such rows.
    """
    point = capture_of(study.compared)
    rows = study.compared.filter(called("layer_share", capture=point))
    if rows.is_empty():
        raise CannotDrawError(NEEDS)
    one = len(study.scenarios) == 1
    name = pl.col("series") if one else pl.concat_str("scenario", "series", separator=", ")
    order = {layer: place for place, layer in enumerate(LAYERS.values())}
    place = pl.col("layer").replace_strict(order, return_dtype=pl.Int64)
    return rows.select(name.alias("condition"), "layer", place.alias("place"), "value")


def layers_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one bar for each condition, stacked from the outermost layer inwards."""
    layers = [layer for layer in LAYERS.values() if layer in set(frame.get_column("layer").to_list())]
    scale = alt.Scale(domain=layers, range=list(PALETTE[: len(layers)]))
    several = frame.get_column("condition").n_unique() > 1
    bars = alt.Chart(frame).encode(
        x=alt.X("value:Q", title="share of frame bytes, %", scale=alt.Scale(domain=[0, 100])),
        y=alt.Y("condition:N", title=None, axis=alt.Axis() if several else None),
        color=alt.Color("layer:N", scale=scale, title=None),
        order=alt.Order("place:Q"),
    )
    sized: AnyChart = bars.mark_bar().properties(width=WIDTH - 160 if several else WIDTH, height=alt.Step(36))
    return sized


def throughput_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), capture, kind, mbps of the first MOST_POINTS capture points of the first
    run, in bins of at least a second; CannotDrawError without packets.
    """
    run = study.cells[0].run
    parts = [
        rows.select(seconds("t_ns", run), capture=pl.lit(point), kind="kind", mbps="mbps")
        for point in list(run.captures)[:MOST_POINTS]
        if not (rows := throughput(run.captures[point])).is_empty()
    ]
    if not parts:
        raise CannotDrawError(NEEDS)
    return pl.concat(parts)


def throughput_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws frame bits, payload bits and retransmitted payload bits over time."""
    points = frame.get_column("capture").unique(maintain_order=True).to_list()
    kinds = [kind for kind in KINDS if kind in set(frame.get_column("kind").to_list())]
    several = len(points) > 1
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("mbps:Q", title="Mbit/s", scale=alt.Scale(zero=True)),
            color=colour(points, field="capture") if several else colour(kinds, field="kind"),
            strokeDash=dash(kinds, field="kind"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=280)


SPECS = (
    Spec(
        "packet-sizes",
        "Packet sizes",
        "Share of the packets captured in the hold by frame length, in the bins of Wireshark's statistics.",
        sizes_data,
        sizes_chart,
    ),
    Spec(
        "layers",
        "Bytes by layer",
        "The layers of captured frames, outermost first; data is what applications exchange.",
        layers_data,
        layers_chart,
    ),
)
THROUGHPUT = Spec(
    "throughput-time",
    "Throughput at the capture points",
    "Frames on the wire, TCP and UDP payload, and TCP retransmissions; both directions together.",
    throughput_data,
    throughput_chart,
)
