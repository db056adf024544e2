"""Draws the link proof: the requested, expected and measured value of each link direction."""

from __future__ import annotations

import altair as alt
import polars as pl

from contract.verdict import FAILS, HOLDS, OPEN
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK, MUTED
from reports.proofs import ORDER, of_cell, proven
from reports.study import Study

MOST_ROWS = 24  # largest number of rows for each quantity, failures first
MOST_RUNS = 40  # largest number of runs whose dots at one place can be distinguished
VERDICTS = {HOLDS: "#0072B2", FAILS: "#D55E00", OPEN: "#6F6F6F"}


def proof_data(study: Study) -> pl.DataFrame:
    """Returns the numeric checks of at most MOST_ROWS places (link and direction) for each quantity, failing
    places first, with one row for each run. CannotDrawError without a judged link.

    Of more than MOST_RUNS runs, MOST_RUNS are shown, evenly chosen, and for each place the first MOST_RUNS
    failures of the others.
    """
    known = _named(proven(study), "least")
    if known.is_empty():
        raise CannotDrawError("needs proof.json with a judged link; the topology may have no impairment")
    shown = (
        known.select("what", "place")
        .unique(maintain_order=True)
        .group_by("what", maintain_order=True)
        .head(MOST_ROWS)
    )
    return _dots(study, shown, bool(known.get_column("fails").sum())).sort(ORDER)


def _dots(study: Study, shown: pl.DataFrame, some_fail: bool) -> pl.DataFrame:
    """Returns the rows of the places in `shown`, from the evenly chosen runs. With `some_fail`, also the
    first MOST_RUNS failures of each place in the other runs.
    """
    runs = len(study.cells)
    even = {n * runs // MOST_RUNS for n in range(MOST_RUNS)} if runs > MOST_RUNS else set(range(runs))
    chosen, failed = list[pl.DataFrame](), list[pl.DataFrame]()
    for number, cell in enumerate(study.cells):
        if number not in even and not some_fail:
            continue
        rows = _named(of_cell(cell), "measured").join(
            shown, on=["what", "place"], how="semi", maintain_order="left"
        )
        if number in even:
            chosen.append(rows)
        else:
            more = pl.concat([*failed, rows.filter(pl.col("verdict") == "fails")])
            most = more.group_by("what", "place", maintain_order=True).head(MOST_RUNS)
            failed = [most.select(rows.columns)]
    return pl.concat([*chosen, *failed])


def _named(rows: pl.DataFrame, measured: str) -> pl.DataFrame:
    """Returns the rows with a requested and a measured value (column `measured`), without rows about
    reachability; link and direction become `place`, quantity and unit become `what`.
    """
    known = (
        pl.col("requested").is_not_null() & pl.col(measured).is_not_null() & (pl.col("quantity") != "reach")
    )
    return rows.filter(known).with_columns(
        place=pl.col("link") + " " + pl.col("direction"),
        what=pl.when(pl.col("unit") == pl.col("quantity"))  # unit and quantity are both "hops"
        .then("quantity")
        .otherwise(pl.col("quantity") + ", " + pl.col("unit").fill_null("")),
    )


def proof_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one panel for each quantity: ticks at the requested and expected values, a dot at the measured
    one, and its interval.
    """
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
        base.mark_point(size=70).encode(x=x("measured"), color=verdict),
        base.mark_tick(color=MUTED, thickness=1, size=18).encode(x=x("requested")),
        base.mark_tick(color=INK, thickness=2, size=18).encode(x=x("expected")),
    ).properties(width=560, height=alt.Step(26))


SPECS = (
    Spec(
        "proof-chart",
        "Links: requested and measured",
        "Vertical line: expected value; thin grey line: requested value, where different. Dot with its 95 % "
        "interval: measured with probe frames before the scenario. More than 40 runs: 40 evenly chosen ones, "
        "and up to 40 failures of each link.",
        proof_data,
        proof_chart,
    ),
)
