"""Computes the metrics, tables and figure of tests 4 and 5: the losses in an outage of a link, and the time
until messages arrive again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import EVENT, HALF, INK, PALETTE
from reports.metrics.metric import Metric, Of, count
from reports.numbers import plain
from reports.papers.paper import Table
from reports.rundir import Run
from reports.study import Study, per_cell

# Traffic classes of reserve-recovery.yaml, in the order of rows and panels -> title.
CLASSES = {
    "amqp-default": "AMQP, default settings",
    "amqp-good": "AMQP, good settings",
    "mqtt-default": "MQTT, default settings",
    "mqtt-good": "MQTT, good settings",
    "sv": "Sampled Values",
    "udp": "UDP",
}
COLUMNS = {
    "never_arrived": "never arrived",
    "due_in_outage": "due in the outage",
    "resumed_after": "first message after, s",
    "caught_up_after": "last late one after, s",
}
BIN_NS = 500_000_000  # shortest time bin of the plot; longer runs have at most MOST_BINS bins
MOST_BINS = 200
LEAST_S = 5e-5  # lower end of the latency axis, s
LATE_NS = 1_000_000_000  # ns; a message that took longer waited until the link was back


@dataclass(frozen=True)
class Cut:
    """The outage of the link in a run: its begin and its end in Unix ns."""

    down_ns: int
    up_ns: int


def cut_of(run: Run) -> Cut | None:
    """Returns the outage from the first successful link-down to the first link-up of the run; None if one of
    them is missing or the run is not of tests 4 or 5.
    """
    events, messages = run.table("events"), run.table("messages")
    if events is None or messages is None or not set(messages["class"].unique()) >= CLASSES.keys():
        return None
    down, up = (
        events.filter((pl.col("action") == action) & pl.col("ok"))["t_ns"]
        for action in ("link-down", "link-up")
    )
    return None if down.is_empty() or up.is_empty() else Cut(int(down[0]), int(up[0]))


def recovery_metrics(run: Run) -> list[Metric]:
    """Returns for each class: messages that never arrived, messages due in the outage, and in s from its end
    the first arrival and the last arrival of a message more than 1 s old; empty for runs of other tests.

    A class without such an arrival has no metric for it.
    """
    cut, messages = cut_of(run), run.table("messages")
    if cut is None or messages is None:
        return []
    expected = messages.filter(pl.col("receiver").is_not_null())
    return [one for name in CLASSES for one in _of_class(name, expected.filter(pl.col("class") == name), cut)]


def _of_class(name: str, rows: pl.DataFrame, cut: Cut) -> Iterator[Metric]:
    of = Of(traffic_class=name)
    never, within = (
        rows["received_ns"].null_count(),
        pl.col("scheduled_ns").is_between(cut.down_ns, cut.up_ns),
    )
    yield count("never_arrived", of, never, "messages", rows.height, "count over the whole run")
    yield count("due_in_outage", of, rows.filter(within).height, "messages", rows.height, "count")
    after = rows.filter(pl.col("received_ns") > cut.up_ns)
    if not after.is_empty():
        first = after.select(pl.col("received_ns").min()).item() - cut.up_ns
        yield count("resumed_after", of, first / 1e9, "s", after.height, "first arrival after the link is up")
    late = after.filter(pl.col("latency_ns") > LATE_NS)
    if not late.is_empty():
        last = late.select(pl.col("received_ns").max()).item() - cut.up_ns
        yield count("caught_up_after", of, last / 1e9, "s", late.height, "last arrival of more than 1 s")


def tables(study: Study) -> tuple[Table, ...]:
    """Returns a table for each scenario and series with runs of tests 4 or 5: the losses and the times until
    recovery, as means over repetitions.
    """
    found = study.added(recovery_metrics).filter(pl.col("name").is_in(list(COLUMNS)))
    means = found.group_by("scenario", "series", "name", "traffic_class").agg(pl.col("value").mean())
    made = []
    for scenario, series in product(study.scenarios, study.series or [""]):
        rows = means.filter((pl.col("scenario") == scenario) & (pl.col("series") == series))
        if rows.is_empty():
            continue
        value = {(name, of): v for name, of, v in rows.select("name", "traffic_class", "value").iter_rows()}
        where = f"{scenario}, {series}" if series else scenario
        caption = f"Recovery: {where}. Seconds count from the moment at which the link is up again."
        body = tuple(
            (title, *(_text(value.get((name, of))) for name in COLUMNS)) for of, title in CLASSES.items()
        )
        made.append(Table("recovery", caption, ("", *COLUMNS.values()), body))
    return tuple(made)


def _text(value: float | None) -> str:
    return "none" if value is None else plain(round(value, 3))


def data(study: Study) -> pl.DataFrame:
    """Returns the columns class, at (due time in s from the cut), latency (longest, s), lost, outage (s), of
    the first repetition, in bins of due time; CannotDrawError without runs of tests 4 or 5.
    """
    rows = per_cell(study, _over_time)
    if rows is None:
        raise CannotDrawError("needs a run of test 4 or 5")
    return rows.filter(pl.col("repetition") == 1)


def _over_time(run: Run) -> pl.DataFrame | None:
    cut, messages = cut_of(run), run.table("messages")
    if cut is None or messages is None:
        return None
    first, last = messages["scheduled_ns"].min(), messages["scheduled_ns"].max()
    assert isinstance(first, int) and isinstance(last, int)  # there are messages, so both values exist
    width_ns = BIN_NS * max(1, math.ceil((last - first) / BIN_NS / MOST_BINS))
    due = (pl.col("scheduled_ns") - cut.down_ns) // width_ns * width_ns / 1e9
    return (
        messages.filter(pl.col("class").is_in(list(CLASSES)) & pl.col("receiver").is_not_null())
        .group_by(pl.col("class").replace(CLASSES), due.alias("at"))
        .agg(
            (pl.col("latency_ns").max() / 1e9).alias("latency"),
            pl.col("received_ns").null_count().cast(pl.Int64).alias("lost"),
            pl.lit((cut.up_ns - cut.down_ns) / 1e9).alias("outage"),
        )
        .sort("class", "at")
    )


def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one panel for each class: latency by due time, with crosses for losses."""
    panels = list(CLASSES.values())
    field, order = ("series", study.series) if len(study.series) > 1 else ("scenario", study.scenarios)
    colours = alt.Scale(domain=order, range=list(PALETTE[: len(order)]))
    base = alt.Chart(frame).encode(x=alt.X("at:Q", title="due, s from the cut"))
    # The axis begins below every latency of the systems, so that crosses at its bottom touch no line.
    longest = float(frame["latency"].max() or 0.0)  # type: ignore[arg-type]  # a float
    scale = alt.Scale(type="log", domain=[LEAST_S, max(20.0, longest)], clamp=True)
    y = alt.Y("latency:Q", title="latency, s", scale=scale)
    lines = base.mark_line(invalid="break-paths-filter-domains").encode(
        y=y, color=alt.Color(f"{field}:N", title=None, scale=colours)
    )
    lost = (
        base.transform_filter("datum.lost > 0")
        .mark_point(shape="cross", color=EVENT, size=30)
        .encode(y=alt.datum(1.5 * LEAST_S))
    )
    ends = (
        alt.Chart(frame)
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=alt.X("outage:Q", aggregate="max"), detail=f"{field}:N")
    )
    begin = alt.Chart(frame).mark_rule(color=INK, strokeDash=[4, 3]).encode(x=alt.datum(0.0))
    layered = alt.layer(begin, ends, lines, lost).properties(width=HALF, height=150)
    panelled: alt.FacetChart = layered.facet(facet=alt.Facet("class:N", title=None, sort=panels), columns=2)
    return panelled


SPEC = Spec(
    "recovery",
    "Recovery from an outage (section 4.2)",
    "By when a message was due: how long it took, the longest of each half second, or of each 200th of the "
    "run; a cross: some never arrived. Dashed: the link is cut, and up again. First repetition.",
    data,
    draw,
    ("default-not-reliable", "sv-resumes"),
    wide=True,
)
