"""Draws figures 1 to 6: heat maps of middleware and serialisers, of throughput and of latency, for each
pattern.
"""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK
from reports.papers.middleware_2017.pairs import LATENCY, PATTERNS, THROUGHPUT, pairs, usual
from reports.study import Study

LABELS = 125  # pixels for the longest serialiser's name
_STEP = {"width": 62, "height": 20}


def chosen(name: str, pattern: str) -> Callable[[Study], pl.DataFrame]:
    """Returns a function that computes the pairs of one figure: use, serialiser, value, share (0 to 1, of the
    value of the best pair on the usual device and network, or of all pairs if there is none there). It raises
    CannotDrawError without pairs.
    """

    def data(study: Study) -> pl.DataFrame:
        rows = study.once(pairs).filter((pl.col("name") == name) & (pl.col("pattern") == pattern))
        if rows.is_empty():
            raise CannotDrawError("needs runs of topologies/papers/middleware.yaml")
        of_java = rows.filter(usual(pl.col("use")))["value"]
        of_all = rows["value"] if of_java.is_empty() else of_java
        best = of_all.max() if name == THROUGHPUT else of_all.min()
        share = pl.col("value") / best if name == THROUGHPUT else best / pl.col("value")
        return rows.select("use", "serialiser", "value", share.clip(0, 1).alias("share"))

    return data


def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws a heat map with the best pair darkest; rows and columns are sorted by their mean share of the
    best pair's value.
    """
    across = alt.Axis(orient="top", labelAngle=-40)
    x = alt.X("use:N", sort=_order(frame, "use"), title=None, axis=across)
    y = alt.Y("serialiser:N", sort=_order(frame, "serialiser"), title=None, axis=alt.Axis(minExtent=LABELS))
    shown = frame.with_columns(label=pl.col("value").map_elements(_three_digits, return_dtype=pl.String))
    base = alt.Chart(shown).encode(x=x, y=y)
    scale = alt.Scale(scheme="blues", domain=[0, 1])
    cells = base.mark_rect(stroke="white").encode(
        color=alt.Color(
            "share:Q", scale=scale, title="of the best", legend=alt.Legend(format="%", titlePadding=14)
        )
    )
    words = base.mark_text(fontSize=10).encode(
        text="label:N", color=alt.condition("datum.share > 0.55", alt.value("white"), alt.value(INK))
    )
    return alt.layer(cells, words).properties(
        width=alt.Step(_STEP["width"]), height=alt.Step(_STEP["height"])
    )


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _order(frame: pl.DataFrame, of: str) -> list[str]:
    """Returns the names in the column `of`, sorted by their mean share, the largest first.

    The paper sorts by a sum; this mean allows for missing pairs.
    """
    means = frame.group_by(of).agg(pl.col("share").mean()).sort(["share", of], descending=[True, False])
    return [str(name) for name in means[of]]


def _specs() -> tuple[Spec, ...]:
    found, number = [], 0
    for name, what, how in (
        (THROUGHPUT, "throughput, messages/s", "Received in a second, of requests the answers"),
        (LATENCY, "latency, ms", "Mean to the receiver, of requests half of the round trip"),
    ):
        for pattern, title in PATTERNS.items():
            number += 1
            found.append(
                Spec(
                    f"figure-{number}",
                    f"Figure {number}. {title}: {what}",
                    f"{how}. The darker the nearer to the best pair.",
                    chosen(name, pattern),
                    draw,
                    wide=True,
                )
            )
    return tuple(found)


SPECS = _specs()
