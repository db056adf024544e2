"""Draws figures 8 to 13: CPU and traffic against the number of connected clients, one curve for each QoS
level.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HEIGHT, WIDTH, colour, dash, marker
from reports.metrics.ramp import against_clients
from reports.metrics.stats import t_quantile
from reports.papers.vnet_2014.shape import MANY, ONE, shape
from reports.study import Study, per_cell

HOW = (
    "Curves: means of the one-second samples of the ramp, against the clients then connected. "
    "Diamonds: mean of the hold, with its 95 % interval."
)
Source = tuple[str, str]  # node set, quantity


def ramp_data(wanted: str, sources: dict[str, Source]) -> Callable[[Study], pl.DataFrame]:
    """Returns a function that computes the columns scenario, series, curve, step, clients, value, low, high,
    repetitions, part, n of the runs with the shape `wanted`, as means over repetitions.

    Each curve is a set of nodes and a quantity. It raises CannotDrawError if no such run has them.
    """

    def data(study: Study) -> pl.DataFrame:
        parts, loads = [], dict[str, pl.DataFrame | None]()
        for curve, (nodes, quantity) in sources.items():
            if nodes not in loads:
                loads[nodes] = per_cell(
                    study, partial(against_clients, which=nodes), lambda run: shape(run) == wanted
                )
            if (rows := loads[nodes]) is not None:
                parts.append(rows.filter(pl.col("quantity") == quantity).with_columns(curve=pl.lit(curve)))
        found = pl.concat(parts) if parts else None
        if found is None or found.is_empty():
            raise CannotDrawError(_needs(wanted))
        return _over_repetitions(found)

    return data


def _needs(wanted: str) -> str:
    many = "many publishers and one subscriber" if wanted == ONE else "clients that publish and subscribe"
    scenario = "1" if wanted == ONE else "2"
    return f"needs a run of scenario {scenario} ({many}) with a ramp, node samples and client records"


def _over_repetitions(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the mean and t interval over repetitions; a single repetition keeps the run's own interval,
    which only the hold has.
    """
    keys = ["scenario", "series", "curve", "part", "step"]
    merged = rows.group_by(keys, maintain_order=True).agg(
        pl.col("clients").mean(),
        pl.col("value").mean(),
        pl.col("value").std().alias("sd"),
        pl.col("low").first(),
        pl.col("high").first(),
        pl.len().alias("repetitions"),
        pl.col("n").sum(),
    )
    quantile = pl.col("repetitions").map_elements(_t, return_dtype=pl.Float64)
    half = quantile * pl.col("sd") / pl.col("repetitions").sqrt()
    many = pl.col("repetitions") > 1
    return (
        merged.with_columns(
            low=pl.when(many).then(pl.col("value") - half).otherwise(pl.col("low")),
            high=pl.when(many).then(pl.col("value") + half).otherwise(pl.col("high")),
        )
        .drop("sd")
        .sort(keys)
    )


def _t(n: int) -> float:
    return t_quantile(0.975, n - 1) if n > 1 else 0.0


def ramp_chart(y_title: str, order: tuple[str, ...]) -> Callable[[pl.DataFrame, Study], AnyChart]:
    """Returns a function that draws a curve for the ramp and a diamond with its interval for the hold, for
    each series; curves differ by dashes, in the order `order`.
    """

    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        present = set(frame.get_column("curve").to_list())
        curves = [name for name in order if name in present]
        base = alt.Chart(frame).encode(
            x=alt.X(
                "clients:Q", title="connected clients", scale=alt.Scale(zero=True, nice=False, padding=6)
            ),
            y=alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=True, domainMin=0)),
            color=colour(study.series),
        )
        ramp = base.transform_filter("datum.part == 'ramp'")
        hold = base.transform_filter("datum.part == 'hold'")
        lines = ramp.mark_line()
        layers = [
            lines.encode(strokeDash=dash(curves, field="curve")) if len(curves) > 1 else lines,
            ramp.mark_point(size=34, opacity=0.9).encode(shape=marker(study.series)),
            hold.mark_rule(strokeWidth=1.6, clip=True).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q"),
            hold.mark_point(size=130, shape="diamond", opacity=1),
        ]
        return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)

    return draw


def _spec(
    number: str, title: str, wanted: str, sources: dict[str, Source], y: str, claims: tuple[str, ...]
) -> Spec:
    return Spec(
        f"figure-{number}",
        f"Figure {number}. {title}",
        HOW,
        ramp_data(wanted, sources),
        ramp_chart(y, tuple(sources)),
        claims,
    )


CPU, RATE = "CPU, % of a core", "rate, kB/s"
BROKER_NET: dict[str, Source] = {"received": ("broker", "received"), "sent": ("broker", "sent")}
SPECS = (
    _spec(
        "8",
        "Scenario 1, broker CPU",
        ONE,
        {"broker": ("broker", "cpu")},
        CPU,
        ("cpu-clients-1", "cpu-qos-1", "cpu-step-1", "cpu-scenarios"),
    ),
    _spec(
        "9",
        "Scenario 1, broker bandwidth",
        ONE,
        BROKER_NET,
        RATE,
        ("net-clients-1", "net-qos-1", "net-step-1", "receives-more"),
    ),
    _spec(
        "10",
        "Scenario 1, CPU of the single subscriber and of a publisher",
        ONE,
        {"subscriber": ("receiver", "cpu"), "mean publisher": ("sender", "cpu")},
        CPU,
        ("subscriber-cpu", "step-subscriber-cpu"),
    ),
    _spec(
        "11",
        "Scenario 1, bandwidth of the single subscriber",
        ONE,
        {"received": ("receiver", "received"), "sent": ("receiver", "sent")},
        RATE,
        ("subscriber-net", "publisher-net"),
    ),
    _spec("12", "Scenario 2, broker CPU", MANY, {"broker": ("broker", "cpu")}, CPU, ("cpu-scenarios",)),
    _spec("13", "Scenario 2, broker bandwidth", MANY, BROKER_NET, RATE, ("rates-match",)),
)
