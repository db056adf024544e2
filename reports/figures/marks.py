"""Adds the time axis, the phases and the timeline events to plots over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError
from reports.figures.theme import EVENT, HALO, MUTED
from reports.roles import SECOND, origin_ns, phases
from reports.rundir import Run

SHORTEST_S = 1.0  # s; samples are a second apart, so they lie outside the axis of a shorter scenario
NAME_SHARE = 0.06  # share of the axis's length that the name of a phase needs
# largest number of labelled events; more labels would cover the curves, so only the lines are drawn
LABELLED = 14


def seconds(column: str, run: Run) -> pl.Expr:
    """Returns the column's Unix nanoseconds as seconds since the scenario's start, as the column time."""
    return ((pl.col(column) - (origin_ns(run) or 0)) / SECOND).alias("time")


def phase_rows(run: Run) -> pl.DataFrame:
    """Returns the columns time, end, phase of the run's phases, in seconds since the scenario's start."""
    zero = origin_ns(run) or 0
    rows = [
        ((s.start_ns - zero) / SECOND, (s.end_ns - zero) / SECOND, name) for name, s in phases(run).items()
    ]
    return pl.DataFrame(
        rows, schema={"time": pl.Float64, "end": pl.Float64, "phase": pl.String}, orient="row"
    )


def event_rows(run: Run) -> pl.DataFrame:
    """Returns the columns time (s), event (its label, or else action and targets, at most 40 characters) and
    ok of the timeline events in the run's table; no rows without that table.
    """
    schema = {"time": pl.Float64, "event": pl.String, "ok": pl.Boolean}
    table = run.table("events")
    if table is None:
        return pl.DataFrame(schema=schema)
    zero = origin_ns(run) or 0
    rows = [
        ((e["t_ns"] - zero) / SECOND, _label(e), bool(e.get("ok", True))) for e in table.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def time_axis(run: Run) -> alt.X:
    """Returns the x axis of all plots over time, from the scenario's start to the end of its last phase.
    CannotDrawError if that is shorter than SHORTEST_S; without phases, the axis has no fixed end.
    """
    named = phase_rows(run)
    end = max(named.get_column("end").to_list(), default=None)
    if end is not None and end < SHORTEST_S:
        raise CannotDrawError("the scenario ended in its first second")
    scale = alt.Scale(nice=False) if end is None else alt.Scale(domain=[0, end], nice=False)
    return alt.X("time:Q", title="time since the scenario's start, s", scale=scale)


def _label(event: dict[str, Any]) -> str:
    targets = event.get("targets") or ""
    named = targets if isinstance(targets, str) else " ".join(str(t) for t in targets)
    return str(event.get("label") or f"{event['action']} {named}").strip()[:40]


def mark_times(chart: alt.Chart, run: Run) -> AnyChart:
    """Returns the chart with a line where each phase starts, its name if there is room, and a dashed line for
    each event. With more than LABELLED events, their labels are left out.
    """
    layers: list[alt.Chart] = []
    above: list[alt.Chart] = []
    named = phase_rows(run)
    if not named.is_empty():
        base = alt.Chart(named).encode(x=alt.X("time:Q"))
        layers.append(base.mark_rule(color=MUTED, strokeWidth=1, opacity=0.6))
        names = alt.Chart(_roomy(named)).encode(x=alt.X("time:Q"), y=alt.value(0), text="phase:N")
        above += _readable(names, align="left", baseline="top", dx=4, dy=2, color=MUTED)
    happened = event_rows(run)
    if not happened.is_empty():
        base = alt.Chart(happened).encode(x=alt.X("time:Q"))
        layers.append(base.mark_rule(color=EVENT, strokeDash=[3, 3], strokeWidth=1.2))
        if happened.height <= LABELLED:
            names = base.encode(y=alt.value(0), text="event:N")
            above += _readable(names, angle=270, align="right", baseline="bottom", dx=-18, dy=-3, color=EVENT)
    return alt.layer(*layers, chart, *above)


def _roomy(named: pl.DataFrame) -> pl.DataFrame:
    """Returns the phases that are long enough on the axis for their name, and always the last one."""
    whole = float(named.get_column("end").max() or 0)  # type: ignore[arg-type]  # a float column
    room = pl.col("time").shift(-1) - pl.col("time")
    return named.sort("time").filter(room.is_null() | (room >= NAME_SHARE * whole))


def _readable(names: alt.Chart, color: str, **style: Any) -> list[alt.Chart]:
    """Returns two layers that draw text with a halo in the background colour, so that it stays readable over
    curves.
    """
    halo = names.mark_text(fontSize=11, stroke=HALO, strokeWidth=4, strokeJoin="round", **style)
    return [halo, names.mark_text(fontSize=11, color=color, **style)]
