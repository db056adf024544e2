"""Draws figure 9: the bytes of a measurement by layer, measured and printed side by side."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import PALETTE
from reports.papers.reserve.efficiency import COMBINATIONS, LAYERS
from reports.papers.reserve.tables import measured, published
from reports.study import Study

SOURCES = ("measured", "D4.6")
SCHEMA = {
    "combination": pl.String,
    "source": pl.String,
    "layer": pl.String,
    "place": pl.Int64,
    "bytes": pl.Float64,
}
WIDTH = 110  # width of one combination's pair of bars


def data(study: Study) -> pl.DataFrame:
    """Returns the columns combination, source (measured or D4.6), layer, place (order from the wire up),
    bytes of one measurement; values that are missing or zero are left out. CannotDrawError without a run of
    test 8.
    """
    found = measured(study)
    if not found:
        raise CannotDrawError("needs a run of test 8 with its captures")
    rows = []
    for one, title in COMBINATIONS.items():
        for place, (layer, name) in enumerate(LAYERS.items()):
            values = (found.get((one, "measurement_layer", layer)), published(one, layer))
            rows += [
                (title, source, name, place, value)
                for source, value in zip(SOURCES, values, strict=True)
                if value
            ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws two bars for each combination, stacked from the wire upwards."""
    names = list(LAYERS.values())
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("source:N", sort=list(SOURCES), title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("sum(bytes):Q", title="bytes a measurement"),
            color=alt.Color(
                "layer:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])),
            ),
            order=alt.Order("place:Q"),
        )
        .properties(width=WIDTH, height=300)
    )
    faceted: alt.FacetChart = bars.facet(
        column=alt.Column("combination:N", title=None, sort=list(COMBINATIONS.values()))
    )
    return faceted


SPEC = Spec(
    "figure-9",
    "Figure 9. Protocol hierarchy of a measurement",
    "Bytes of each layer for one measurement of 10 signals, at the device. Payload: both ways where "
    "measured; of what the deliverable prints one way is among the protocol's.",
    data,
    draw,
    ("sv-lightest", "amqp-overhead", "acknowledgements", "protobuf-saves"),
    wide=True,
)
