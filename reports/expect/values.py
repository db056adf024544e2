"""Computes the values of one run that an expectation on a metric judges, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from contract.metrics import LINK_RATE, METRICS, PERCENTILES, RECOVERY
from contract.plan import Expectation
from reports.expect import bootstrap
from reports.expect.span import narrowed, span_of
from reports.metrics.groups import group_metrics
from reports.metrics.interruptions import MOST as MOST_EVENTS
from reports.metrics.interruptions import TIMES, events, interruption_metrics, unended
from reports.metrics.links import MOST, link_metrics
from reports.metrics.load import load_metrics
from reports.metrics.messages import by_guarantee, held_messages, latency_metrics, message_metrics
from reports.metrics.metric import Metric, Of
from reports.metrics.programs import unread
from reports.metrics.stats import Estimate
from reports.metrics.summary import summarise
from reports.rundir import Run

Make = Callable[[Run], list[Metric]]


def _every_link(run: Run) -> list[Metric]:
    """Returns the metrics of all links, also of those that summary.json leaves out."""
    return link_metrics(run, None)


# First words of metric names -> the function that computes these metrics, so that a narrowed run need not
# compute all.
MAKERS: dict[str, tuple[Make, ...]] = {
    "latency": (latency_metrics,),
    "round": (latency_metrics,),
    "messages": (message_metrics,),
    "link": (_every_link,),
    "queue": (_every_link,),
    "cpu": (load_metrics, group_metrics),
    "memory": (load_metrics, group_metrics),
    "received": (load_metrics, group_metrics),
    "sent": (load_metrics, group_metrics),
}
# Metrics of message times -> what a message without such a time lacks.
TIMES_OF = {"latency": "messages arrived", "round_trip": "requests was answered"}
# Counts of messages that have no meaning if no message was sent.
OF_SENT = tuple(f"messages_{fate}" for fate in ("lost", "duplicated", "reordered", "late", "unanswered"))


@dataclass(frozen=True)
class Value:
    """A value of a run. `low` and `high` bound its interval and are None without one. If `exact`, it is
    counted, not estimated, and its interval is the value itself.
    """

    of: str
    value: float
    low: float | None
    high: float | None
    unit: str
    exact: bool
    n: int
    method: str


def values(
    run: Run, metrics: Sequence[Metric], one: Expectation, *, intervals: bool = True
) -> list[Value] | str:
    """Returns the values that the expectation judges, or the reason why there are none. `metrics` are those
    of the run's summary.json; with `during` or `after` they are computed again for that time.

    With `intervals`, latencies and round trips get intervals from a block bootstrap; else they keep those of
    `metrics`, which neglect correlation.
    """
    if one.name == RECOVERY:
        return _recoveries(run, one)
    of_event = "event" in METRICS[name_of(one)].of
    if of_event and len(events(run)) > MOST_EVENTS:
        metrics = interruption_metrics(run, one.after or None, None)
    if (one.during or one.after) and not of_event:
        span = span_of(run, one)
        if span is None:
            return f"the event {one.during or one.after} did not happen in the hold"
        run = narrowed(run, span)
        makers = MAKERS.get(name_of(one).split("_")[0], (summarise,))
        metrics = [found for make in makers for found in make(run)]
    elif "link" in METRICS[name_of(one)].of and len({m.of.link for m in metrics if m.of.link}) >= MOST:
        metrics = _every_link(run)
    wanted = {**one.of, **({"event": one.after} if of_event and one.after else {})}
    found = [m for m in metrics if m.name == name_of(one) and m.unit == one.unit and fits(m.of, wanted)]
    unheard = [*_unheard(run, one, wanted), *_without_figures(run, one, wanted)]
    if not found and not unheard:
        return f"no {one.name} was measured"
    # throughput is judged in the direction that carries more
    if name_of(one) != one.name and "direction" not in one.of:
        busier = max(found, key=lambda m: m.value)
        return [replace(_value(run, busier, intervals), of=one.of["link"])]
    silent = {m.of for m in metrics if m.name == "messages_sent" and not m.value}
    known = [_none(m) if m.name in OF_SENT and m.of in silent else _value(run, m, intervals) for m in found]
    return known + unheard


def _none(m: Metric) -> Value:
    """Returns a value without an interval for a count of a class that sent no message."""
    return Value(m.of.words, m.value, None, None, m.unit, False, 0, "no message was sent")


def _unheard(run: Run, one: Expectation, wanted: dict[str, str]) -> list[Value]:
    """Returns a value without an interval for each class of which no message arrived, so that a missing
    latency does not meet a bound.
    """
    what, table = one.name.rpartition("_")[0], held_messages(run)
    if what not in TIMES_OF or table is None:
        return []
    return [
        Value(of.words, math.nan, None, None, one.unit, False, 0, why)
        for of, rows in by_guarantee(table)
        if fits(of, wanted) and (why := unheard(rows, what))
    ]


def unheard(rows: pl.DataFrame, what: str) -> str:
    """Returns a sentence that none of the messages of a class arrived, or that none of its requests was
    answered; empty if one was, or if the class has no such time.
    """
    asked = pl.col("pattern") == "request"
    due = rows.filter(pl.col("receiver").is_not_null() & (asked if what == "round_trip" else ~asked))
    if due.is_empty() or due.get_column(f"{what}_ns").count():
        return ""
    return f"none of {due.height:,} {TIMES_OF[what]}"


def _without_figures(run: Run, one: Expectation, wanted: dict[str, str]) -> list[Value]:
    """Returns a value without an interval for each program whose log has no figures, so that it does not meet
    a bound.
    """
    if "program" not in METRICS[name_of(one)].of:
        return []
    chosen = wanted.get("program", "")
    return [
        Value(log.program, math.nan, None, None, one.unit, False, 0, log.text)
        for log in unread(run.path, run.plan)
        if not chosen or chosen.split()[0] == log.program
    ]


def name_of(one: Expectation) -> str:
    """Returns the name in summary.json of the metric of an expectation."""
    if one.name == RECOVERY:
        return "interruption_until"
    return "link_carried" if one.name == LINK_RATE and "link" in one.of else one.name


def fits(of: Of, wanted: dict[str, str]) -> bool:
    """Returns whether a subject has all fields of `wanted`, compared as text."""
    known = asdict(of)
    return all(str(known[column]) == value for column, value in wanted.items())


def _value(run: Run, m: Metric, intervals: bool) -> Value:
    if METRICS[m.name].known == "exact":
        return Value(m.of.words, m.value, m.value, m.value, m.unit, True, m.n, m.method)
    quantile = _of_messages(m)
    if quantile is None or not intervals:
        return Value(m.of.words, m.value, m.low, m.high, m.unit, False, m.n, m.method)
    made = _interval(run, m, quantile or None)
    low, high = (None if border is None else border * 1e-6 for border in (made.low, made.high))
    return Value(m.of.words, m.value, low, high, m.unit, False, made.n, made.method)


def _of_messages(m: Metric) -> float | None:
    """Returns the quantile (0 to 1) of a latency or round trip of a class, 0 for its mean; None for other
    metrics.
    """
    name, _, last = m.name.rpartition("_")
    if name not in TIMES_OF or m.of.traffic_class is None:
        return None
    return 0.0 if last == "mean" else PERCENTILES.get(last)


def _interval(run: Run, m: Metric, q: float | None) -> Estimate:
    """Returns the estimate, in ns, of the mean (`q` None) or quantile of the times from which a metric of
    messages was computed.
    """
    table = held_messages(run)
    assert table is not None, "the metric was computed from it"
    rows = next(rows for of, rows in by_guarantee(table) if of == m.of)
    column = f"{m.name.rpartition('_')[0]}_ns"
    known = rows.drop_nulls(column).sort("scheduled_ns", "flow", "seq")
    times = known.get_column(column).to_numpy().astype(np.float64)
    flows = known.select(pl.struct("flow", "receiver").n_unique()).item()
    timeline = run.table("events")
    happened = [] if timeline is None else timeline.filter("ok").get_column("t_ns").to_list()
    borders = np.searchsorted(known.get_column("scheduled_ns").to_numpy(), happened).tolist()
    return bootstrap.interval(times, q, flows, borders)


def _recoveries(run: Run, one: Expectation) -> list[Value] | str:
    """Returns for each class the time from the event to the end of the pause that it caused: zero without a
    pause, infinite if the pause did not end. The value is unknown if the hold ended before the pause was long
    enough to count.
    """
    metrics = [m for m in interruption_metrics(run, one.after) if fits(m.of, one.of)]
    cut = unended(run, one.after)
    by_class: dict[Of, dict[str, Metric]] = {}
    for m in metrics:
        by_class.setdefault(m.of, {})[m.name] = m
    found = []
    for of, named in by_class.items():
        pause, usual, until = (
            named.get(name) for name in ("interruption", "interruption_before", "interruption_until")
        )
        if pause is None:
            # no message arrived after the pause began, so no pause ended
            if named["interruption_lost"].value:
                why = "messages were lost, and none arrived around the event"
                found.append(Value(of.words, math.nan, None, None, "s", False, 0, why))
            continue
        lasts = usual is None or pause.value > TIMES * usual.value
        if of in cut and (until or not lasts):
            why = "an arrival that was due before the end of the hold did not come, nor a later one"
            found.append(Value(of.words, math.nan, None, None, "s", False, 0, why))
            continue
        seconds = until.value if until else math.inf if lasts else 0.0
        found.append(Value(of.words, seconds, seconds, seconds, "s", True, pause.n, pause.method))
    return found or f"no messages were due around the event {one.after}, or it did not happen in the hold"
