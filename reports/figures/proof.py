"""The proof of the links: what was asked of each direction against what it did."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from reports.cell import Cell
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK, MUTED
from reports.study import Study

MOST_ROWS = 24  # per quantity; the ones that fail come first
UNITS = {"ns": ("ms", 1e-6), "bit/s": ("Mbit/s", 1e-6), "share": ("%", 100.0)}
VERDICTS = {"holds": "#0072B2", "fails": "#D55E00", "not judged": "#6F6F6F"}
SCHEMA = {
    "cell": pl.String,
    "link": pl.String,
    "direction": pl.String,
    "quantity": pl.String,
    "asked": pl.Float64,
    "expected": pl.Float64,
    "realised": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "unit": pl.String,
    "n": pl.Int64,
    "slack": pl.Float64,
    "machine": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
}


def proofs(cells: Sequence[Cell]) -> pl.DataFrame:
    """Every proof of every cell, failures first, in units that one reads.

    asked: as the file says; expected: what that makes on this link, which realised is judged against;
    slack: how far apart they may be; machine: what the machine itself adds.
    """
    frame = _readable(pl.concat([pl.DataFrame(schema=SCHEMA), *map(_of_cell, cells)]))
    order = pl.col("verdict").replace_strict({"fails": 0, "not judged": 1, "holds": 2}, default=1)
    return frame.sort(order, "cell", "quantity", "link", "direction")


def _of_cell(cell: Cell) -> pl.DataFrame:
    rows = [tuple({**one, "cell": cell.name}.get(name) for name in SCHEMA) for one in cell.run.proof]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)


def _readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Nanoseconds as ms, bit/s as Mbit/s, shares as %; other units as they are."""
    factor = pl.col("unit").replace_strict({u: f for u, (_, f) in UNITS.items()}, default=1.0)
    unit = pl.col("unit").replace({u: name for u, (name, _) in UNITS.items()})
    return rows.with_columns(
        pl.col("asked", "expected", "realised", "low", "high", "slack", "machine") * factor, unit=unit
    )


def proof_data(study: Study) -> pl.DataFrame:
    """The proofs with a number, of at most 24 places (link and direction) a quantity; a dot a run."""
    rows = proofs(study.cells).filter(pl.col("asked").is_not_null() & pl.col("realised").is_not_null())
    rows = rows.filter(pl.col("quantity") != "reach")
    if rows.is_empty():
        raise CannotDrawError("needs proof.json with a judged link; the topology may have no impairment")
    rows = rows.with_columns(
        place=pl.col("link") + " " + pl.col("direction"),
        what=pl.when(pl.col("unit") == pl.col("quantity"))  # hops
        .then("quantity")
        .otherwise(pl.col("quantity") + ", " + pl.col("unit").fill_null("")),
    )
    shown = (
        rows.select("what", "place")
        .unique(maintain_order=True)
        .group_by("what", maintain_order=True)
        .head(MOST_ROWS)
    )
    return rows.join(shown, on=["what", "place"], how="semi", maintain_order="left")


def proof_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """A panel a quantity: a line where it was expected, a dot with its interval where it was realised."""
    panels = [_panel(rows) for _, rows in frame.group_by("what", maintain_order=True)]
    return alt.vconcat(*panels, spacing=18)


def _panel(rows: pl.DataFrame) -> AnyChart:
    base = alt.Chart(rows).encode(y=alt.Y("place:N", title=None, axis=alt.Axis(grid=True, labelLimit=0)))
    scale = alt.Scale(zero=False, nice=False, padding=14)

    def x(column: str) -> alt.X:
        return alt.X(f"{column}:Q", title=rows.item(0, "what"), scale=scale, axis=alt.Axis(tickCount=6))

    verdict = alt.Color(
        "verdict:N", scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())), title=None
    )
    return alt.layer(
        base.mark_rule(strokeWidth=1.6).encode(x=x("low"), x2="high:Q", color=verdict),
        base.mark_point(size=70).encode(x=x("realised"), color=verdict),
        base.mark_tick(color=MUTED, thickness=1, size=18).encode(x=x("asked")),
        base.mark_tick(color=INK, thickness=2, size=18).encode(x=x("expected")),
    ).properties(width=560, height=alt.Step(26))


SPECS = (
    Spec(
        "proof",
        "Links: asked against realised",
        "Upright line: expected; thin grey line: asked, where that is another value. Dot with its 95 % "
        "interval: measured with probe frames before the scenario.",
        proof_data,
        proof_chart,
    ),
)
