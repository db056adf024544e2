"""Draws one run over time: CPU and traffic of groups, load of the machine, links, with phases and events
marked.
"""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.figures.latency import bin_seconds
from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import WIDTH, colour, dash, log_ticks
from reports.metrics.groups import groups
from reports.metrics.links import whole
from reports.metrics.load import QUANTITIES
from reports.rundir import Run
from reports.study import Study

MOST_LINKS = 6  # the busiest directions; more curves would be hard to distinguish
MOST_GROUPS = 6  # the groups that use most CPU


def nodes_over_time(*quantities: str) -> Callable[[Study], pl.DataFrame]:
    """Returns a function that computes the columns time (s), curve, quantity, value for the first run: means
    over the nodes of each of the MOST_GROUPS groups with the highest CPU use, in bins of 1 s or more.

    It raises CannotDrawError without samples.
    """

    def data(study: Study) -> pl.DataFrame:
        run = study.cells[0].run
        table = run.table("nodes")
        if table is None:
            raise CannotDrawError("needs node samples (nodes.parquet)")
        named = {c: (name, f) for c, (name, _, f) in QUANTITIES.items() if name in quantities}
        parts = [
            table.filter(pl.col("node").is_in(nodes))
            .select(seconds("t_ns", run), *[(pl.col(c) * f).alias(name) for c, (name, f) in named.items()])
            .unpivot(on=list(quantities), index="time", variable_name="quantity", value_name="value")
            .with_columns(curve=pl.lit(name))
            for name, nodes in _curves(run, table).items()
        ]
        return _binned(pl.concat(parts), "curve", "quantity")

    return data


def _curves(run: Run, table: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Returns the nodes of the MOST_GROUPS groups with the highest CPU use, by the name of their curve;
    CannotDrawError if the plan has no node.
    """
    used = dict(table.group_by("node").agg(pl.col("cpu_ns").max()).iter_rows())
    every = {group: names for (group, _), names in groups(run).items()}
    if not every:
        raise CannotDrawError("the plan names no node")
    most = sorted(every, key=lambda g: -sum(used.get(n) or 0 for n in every[g]) / len(every[g]))[:MOST_GROUPS]
    return {f"mean {g}" if len(every[g]) > 1 else g: every[g] for g in every if g in most}


def _binned(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    rows = rows.drop_nulls("value")
    if rows.is_empty():
        raise CannotDrawError("no samples were taken")
    width = bin_seconds(rows)
    time = (pl.col("time") // width * width).alias("time")
    binned = rows.group_by(*keys, time, maintain_order=True).agg(pl.col("value").mean())
    return binned.sort(*keys, "time").select("time", *keys, "value")


def cpu_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the CPU use of each group's mean node over time."""
    curves = frame.get_column("curve").unique(maintain_order=True).to_list()
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("value:Q", title="CPU, % of a core"),
            color=colour(curves, field="curve"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=260)


def bandwidth_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws received and sent rates on a logarithmic axis, because server and clients differ by orders of
    magnitude.
    """
    curves = frame.get_column("curve").unique(maintain_order=True).to_list()
    scale, axis = log_ticks(frame, "value")
    line = (
        alt.Chart(frame)
        .transform_filter("datum.value > 0")
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("value:Q", title="rate, kB/s", scale=scale, axis=axis),
            color=colour(curves, field="curve"),
            strokeDash=dash(["received", "sent"]),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=300)


def host_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), curve (place and quantity) and value (% of the machine) of the first run,
    as means of bins of 1 s or more; CannotDrawError without samples of the machine.
    """
    run = study.cells[0].run
    table = run.table("host")
    if table is None:
        raise CannotDrawError("needs the machine's samples (host.parquet)")
    names = {"lab": "lab kernel", "outer": "machine outside"}
    parts = [
        table.select(
            seconds("t_ns", run),
            value=100 * pl.col(column),
            curve=pl.col("where").replace(names) + pl.lit(f", {what}"),
        )
        for column, what in (("busy_share", "busy"), ("steal_share", "steal"))
    ]
    return _binned(pl.concat(parts), "curve")


def host_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the busy and steal shares of the machine over time."""
    curves = frame.get_column("curve").unique().sort().to_list()
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("value:Q", title="% of all cores", scale=alt.Scale(domain=[0, 100])),
            color=colour(curves, field="curve"),
            strokeDash=dash(curves, field="curve"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=240)


def links_over_time(column: str, cumulative: bool, factor: float = 1.0) -> Callable[[Study], pl.DataFrame]:
    """Returns a function that computes the columns time (s), curve (link and direction) and value of a column
    times `factor`, as means of bins of 1 s or more, for the MOST_LINKS directions with the largest values.

    With `cumulative`, values are counted from the first sample. CannotDrawError without samples or if all
    values are zero.
    """

    def data(study: Study) -> pl.DataFrame:
        run = study.cells[0].run
        table = run.table("links")
        if table is None:
            raise CannotDrawError("needs link samples (links.parquet); the topology may have no link")
        rows = whole(table).select(
            seconds("t_ns", run),
            curve=pl.col("link") + " " + pl.col("direction"),
            value=pl.col(column).cast(pl.Float64) * factor,
        )
        if cumulative:
            rows = rows.sort("time").with_columns(pl.col("value") - pl.col("value").first().over("curve"))
        if not rows.get_column("value").max():
            raise CannotDrawError(f"{column} was zero throughout")
        most = (
            rows.group_by("curve").agg(pl.col("value").max()).sort("value", "curve", descending=[True, False])
        )
        return _binned(rows.filter(pl.col("curve").is_in(most["curve"].head(MOST_LINKS).to_list())), "curve")

    return data


def links_chart(title: str) -> Callable[[pl.DataFrame, Study], AnyChart]:
    """Returns a function that draws one curve for each link and direction."""

    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        curves = frame.get_column("curve").unique().sort().to_list()
        line = (
            alt.Chart(frame)
            .mark_line(strokeWidth=1.6, interpolate="step-after")
            .encode(
                x=time_axis(study.cells[0].run),
                y=alt.Y("value:Q", title=title),
                color=colour(curves, field="curve"),
                strokeDash=dash(curves, field="curve"),
            )
        )
        return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=220)

    return draw


SPECS = (
    Spec(
        "cpu-time",
        "CPU over time",
        "CPU time of each node's cgroup, as a share of one core.",
        nodes_over_time("cpu"),
        cpu_chart,
    ),
    Spec(
        "bandwidth-time",
        "Bandwidth over time",
        "Frame bytes at the node's interfaces; received means sent to it.",
        nodes_over_time("received", "sent"),
        bandwidth_chart,
    ),
    Spec(
        "links-time",
        "Throughput of the links",
        "Rate that the link forwarded in the second before each sample.",
        links_over_time("bps", False, 1e-6),
        links_chart("Mbit/s"),
    ),
    Spec(
        "links-backlog",
        "Backlog of the links",
        "Packets waiting in the link's queueing discipline.",
        links_over_time("backlog_packets", False),
        links_chart("backlog, packets"),
    ),
    Spec(
        "links-drops",
        "Drops of the links",
        "Packets that the link dropped since the first sample, including requested loss.",
        links_over_time("dropped", True),
        links_chart("dropped, packets"),
    ),
    Spec(
        "host-load",
        "Load of the machine",
        "Above about 80 % busy, or with steal, CPU and latency figures may be wrong.",
        host_data,
        host_chart,
    ),
)
