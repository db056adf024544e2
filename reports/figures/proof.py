"""The proof of the links: what was asked of each direction against what it did."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import CannotDrawError, Spec
from reports.figures.theme import INK
from reports.study import Study

MOST_ROWS = 24  # per quantity; the ones that fail come first
VERDICTS = {"holds": "#0072B2", "fails": "#D55E00", "not judged": "#6F6F6F"}
SCHEMA = {
    "cell": pl.String, "link": pl.String, "direction": pl.String, "quantity": pl.String, "asked": pl.Float64,
    "realised": pl.Float64, "low": pl.Float64, "high": pl.Float64, "unit": pl.String, "n": pl.Int64,
    "verdict": pl.String, "reason": pl.String,
}  # fmt: skip


def proofs(study: Study) -> pl.DataFrame:
    """Every proof of every cell, as proof.json has it, failures first."""
    rows = [
        tuple({**one, "cell": cell.name}.get(name) for name in SCHEMA) for cell in study.cells for one in cell.run.proof
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)
    order = pl.col("verdict").replace_strict({"fails": 0, "not judged": 1, "holds": 2}, default=1)
    return frame.sort(order, "cell", "quantity", "link", "direction")


def proof_data(study: Study) -> pl.DataFrame:
    """The proofs with a number, at most 24 a quantity, named by link and direction."""
    rows = proofs(study).filter(pl.col("asked").is_not_null() & pl.col("realised").is_not_null())
    rows = rows.filter(pl.col("quantity") != "reach")
    if rows.is_empty():
        raise CannotDrawError("needs proof.json with a judged link; the topology may have no impairment")
    several = len(study.cells) > 1
    place = pl.col("link") + " " + pl.col("direction") + (pl.lit(", ") + pl.col("cell") if several else pl.lit(""))
    rows = rows.with_columns(place=place, what=pl.col("quantity") + ", " + pl.col("unit").fill_null(""))
    return rows.group_by("what", maintain_order=True).head(MOST_ROWS)


def proof_chart(frame: pl.DataFrame, study: Study) -> alt.VConcatChart:
    """A panel a quantity: a line where it was asked, a dot with its interval where it was realised."""
    panels = [_panel(rows) for _, rows in frame.group_by("what", maintain_order=True)]
    return alt.vconcat(*panels, spacing=18)


def _panel(rows: pl.DataFrame) -> alt.LayerChart:
    base = alt.Chart(rows).encode(y=alt.Y("place:N", title=None, axis=alt.Axis(grid=True)))
    x = alt.X("realised:Q", title=rows.item(0, "what"), scale=alt.Scale(zero=False, nice=True))
    verdict = alt.Color(
        "verdict:N", scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())), title=None
    )
    return alt.layer(
        base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q"), x2="high:Q", color=verdict),
        base.mark_point(size=70).encode(x=x, color=verdict),
        base.mark_tick(color=INK, thickness=2, size=18).encode(x="asked:Q"),
    ).properties(width=480, height=alt.Step(26))


SPECS = (
    Spec("proof", "Links: asked against realised",
         "Black line: asked. Dot with its 95 % interval: measured with probe frames before the scenario began.",
         proof_data, proof_chart),
)  # fmt: skip
