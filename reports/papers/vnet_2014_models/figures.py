"""Draws figures 17 to 19: data of each side and overhead, in per cent of UDP's on the same network."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, colour, log_ticks
from reports.papers.vnet_2014_models.evidence import MODELS, NETWORKS, evidence, measured
from reports.study import Study

BASE = "udp_rr"
ORDER = [title for model, title in MODELS.items() if model != BASE]
SCHEMA = {
    "network": pl.String,
    "model": pl.String,
    "percent": pl.Float64,
    "value": pl.Float64,
    "unit": pl.String,
}


def against_udp(name: str) -> Callable[[Study], pl.DataFrame]:
    """Returns a function that computes the columns network, model, percent (100: as much as UDP on that
    network), value, unit of the quantity `name`, for the models other than UDP. It raises CannotDrawError if
    no network has values of UDP and of another model.
    """

    def data(study: Study) -> pl.DataFrame:
        found, rows = evidence(study), []
        for network in NETWORKS:
            base = measured(found, name, BASE, network)
            for model, title in MODELS.items():
                value = measured(found, name, model, network)
                if model != BASE and base is not None and value is not None and base.value > 0:
                    rows.append((network, title, 100 * value.value / base.value, value.value, value.unit))
        if not rows:
            raise CannotDrawError("needs runs of UDP and of another interaction model on the same network")
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    return data


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one point for each model, with the two networks side by side and a line at UDP's 100 %."""
    with_base = pl.concat([frame.select("percent"), pl.DataFrame({"percent": [100.0]})])
    scale, axis = log_ticks(with_base, "percent")
    title = "% of UDP's"
    base = alt.Chart(frame).encode(
        x=alt.X("model:N", sort=ORDER, title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("percent:Q", title=title, scale=scale, axis=axis),
    )
    points = base.mark_point(filled=True, size=140).encode(color=colour(ORDER, field="model").legend(None))
    text = base.mark_text(dy=-14, color=INK, fontSize=11).encode(text=alt.Text("percent:Q", format=".4~g"))
    rule = alt.Chart(frame).mark_rule(color=INK, strokeDash=[4, 3]).encode(y=alt.datum(100))
    layered = alt.layer(rule, points, text).properties(width=HALF, height=260)
    return layered.facet(column=alt.Column("network:N", title=None, sort=list(NETWORKS)))


SPECS = (
    Spec(
        "figure-17",
        "Figure 17. Data sent by the utility",
        "In per cent of what UDP's utility sent on the same network (dashed: 100 %); a logarithmic scale.",
        against_udp("sent"),
        chart,
        ("pgm-utility-least", "congestion-worse-than-loss"),
    ),
    Spec(
        "figure-18",
        "Figure 18. Data sent by the consumers",
        "In per cent of what UDP's consumers sent there; consumers that got no update sent none.",
        against_udp("answered"),
        chart,
        (),
    ),
    Spec(
        "figure-19",
        "Figure 19. Protocol overhead",
        "All bytes on the wire, of both sides, but the XML when first sent, in per cent of UDP's.",
        against_udp("overhead"),
        chart,
        ("pgm-most-efficient", "pub-sub-worst", "router-less"),
    ),
)
