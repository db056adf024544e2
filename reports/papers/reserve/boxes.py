"""Draws figures 6 to 8 and 10: box plots of latency by protocol and rate, as in annex A.2."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.cell import Cell
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, PALETTE
from reports.metrics.messages import held_messages
from reports.series import parameters
from reports.study import Study

PROTOCOLS = {"amqp": "AMQP", "mqtt": "MQTT", "udp": "UDP", "sv": "SV"}  # second half of a class's name
SYSTEMS = {"ethernet": "Ethernet", "lte": "5G-ready (LTE)", "nr": "5G prototype (NR)"}
WHISKERS = (0.02, 0.98)
MS = 1e-6
Rows = Callable[[Study], pl.DataFrame]


def boxes(study: Study) -> pl.DataFrame:
    """Returns one row for each run's system, direction, protocol, rate, number of signals and kind of
    traffic, with the latencies of the hold in ms: low, first, mean, third, high (WHISKERS and quartiles),
    worst; and the number of messages. CannotDrawError without runs of tests 1a or 1b.
    """
    found = [rows for cell in study.cells if (rows := _of_cell(cell)) is not None]
    if not found:
        raise CannotDrawError("needs runs of tests 1a or 1b")
    return pl.concat(found)


def _of_cell(cell: Cell) -> pl.DataFrame | None:
    said = parameters(cell.run) | cell.levels
    messages = held_messages(cell.run)
    if messages is None or not {"system", "rate", "signals", "traffic"} <= said.keys():
        return None
    way, protocol = pl.col("class").str.split("-").list.get(0), pl.col("class").str.split("-").list.get(-1)
    known = messages.filter(pl.col("latency_ns").is_not_null() & protocol.is_in(list(PROTOCOLS)))
    latency = pl.col("latency_ns") * MS
    if known.is_empty():
        return None
    return known.group_by(way.alias("direction"), protocol.replace(PROTOCOLS).alias("protocol")).agg(
        pl.lit(SYSTEMS[str(said["system"])]).alias("system"),
        pl.lit(int(said["rate"])).alias("rate"),
        pl.lit(int(said["signals"])).alias("signals"),
        pl.lit(str(said["traffic"])).alias("traffic"),
        latency.quantile(WHISKERS[0]).alias("low"),
        latency.quantile(0.25).alias("first"),
        latency.mean().alias("mean"),
        latency.quantile(0.75).alias("third"),
        latency.quantile(WHISKERS[1]).alias("high"),
        latency.max().alias("worst"),
        pl.len().cast(pl.Int64).alias("messages"),
    )  # fmt: skip


def chosen(system: str | None, direction: str, protocol: str | None = None) -> Rows:
    """Returns a function that computes the boxes of one direction for 10 signals, of one system and protocol
    (None: of all); it raises CannotDrawError if there is none.
    """

    def data(study: Study) -> pl.DataFrame:
        rows = boxes(study).filter((pl.col("direction") == direction) & (pl.col("signals") == 10))
        rows = rows if system is None else rows.filter(pl.col("system") == system)
        rows = rows if protocol is None else rows.filter(pl.col("protocol") == protocol)
        if rows.is_empty():
            raise CannotDrawError(
                f"needs runs of tests 1a or 1b with 10 signals, {direction}, {system or 'any system'}"
            )
        return rows.sort("traffic", "system", "protocol", "rate")

    return data


def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws boxes (quartiles) with a line at the mean and whiskers at the 2nd and 98th percentile, in panels
    by system and kind of traffic.
    """
    rates = [str(rate) for rate in sorted(frame["rate"].unique())]
    shown = frame.with_columns(
        pl.col("rate").cast(pl.String),
        (pl.col("system") + ", " + pl.col("traffic") + " traffic").alias("panel"),
    )
    panels = shown["panel"].unique(maintain_order=True).to_list()
    base = alt.Chart(shown).encode(
        x=alt.X("protocol:N", sort=list(PROTOCOLS.values()), title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("rate:N", sort=rates),
    )
    scale, title = alt.Scale(zero=False), "latency, ms"
    whiskers = base.mark_rule(color=INK).encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q")
    width = max(6, HALF // (6 * len(rates)))
    box = base.mark_bar(size=width, stroke=INK, strokeWidth=0.5).encode(
        y=alt.Y("first:Q", title=title, scale=scale),
        y2="third:Q",
        color=alt.Color(
            "rate:N",
            sort=rates,
            title="messages/s",
            scale=alt.Scale(domain=rates, range=list(PALETTE[: len(rates)])),
            legend=alt.Legend(titlePadding=24),
        ),
    )
    mean = base.mark_tick(color=INK, thickness=2, size=width).encode(
        y=alt.Y("mean:Q", title=title, scale=scale)
    )
    layered = alt.layer(whiskers, box, mean).properties(width=HALF, height=280)
    panelled: alt.FacetChart = layered.facet(
        facet=alt.Facet("panel:N", title=None, sort=panels), columns=2
    ).resolve_scale(y="independent")
    return panelled


_HOW = "Box: first to third quartile; line: mean; whiskers: 2nd and 98th percentile; messages of 10 signals."


def _spec(
    key: str, title: str, system: str | None, direction: str, *claims: str, protocol: str | None = None
) -> Spec:
    return Spec(key, title, _HOW, chosen(system, direction, protocol), draw, claims, wide=True)


SPECS = (
    _spec("figure-6", "Figure 6. Latency on Ethernet", SYSTEMS["ethernet"], "uplink",
          "ethernet-udp-lowest", "ethernet-falls", "ethernet-mqtt-above-amqp"),
    _spec("figure-7", "Figure 7. Uplink latency on the 5G-ready system", SYSTEMS["lte"], "uplink",
          "lte-range", "lte-variance", "lte-worst", "lte-amqp-worse-than-mqtt", "no-loss"),
    _spec("figure-8", "Figure 8. Uplink latency on the 5G prototype", SYSTEMS["nr"], "uplink", "nr-up"),
    _spec("figure-10", "Figure 10. Uplink latency of AMQP on the three systems", None, "uplink",
          "nr-below-lte", protocol="AMQP"),
    _spec("downlink", "Downlink latency of the three systems", None, "downlink", "nr-down"),
)  # fmt: skip
