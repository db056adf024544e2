"""Computes the effects of timeline events on each class of messages: losses, pauses, recovery times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.roles import SECOND, phases
from reports.rundir import Run

# Actions that can interrupt a flow
ACTIONS = ("link-down", "link-up", "impair", "stop", "kill", "restart", "freeze", "disk-full")
UP, OVER = (
    "link-up",
    ": over",
)  # events with such an action, or such an end of their label, repair something and lose no message
MOST = 40  # events with metrics of their own in summary.json: the first ones of the hold
TIMES = 2.0  # a pause that is this many times as long as the longest one before any event is an interruption
PAIR = ("flow", "receiver")
_SENT = pl.when(pl.col("sent_ns") > 0).then("sent_ns").otherwise("scheduled_ns")


@dataclass(frozen=True)
class Happened:
    """An event of the timeline and its span in Unix ns, which ends at the next event or at the end of the
    hold. If `mends`, the event only repairs and loses no message.
    """

    label: str
    from_ns: int
    until_ns: int
    mends: bool | None = False


@dataclass(frozen=True)
class Usual:
    """The longest pause (0: unknown) and the longest transit time of a class before any event, in ns."""

    pause_ns: int
    way_ns: int


def interruption_metrics(run: Run, label: str | None = None, most: int | None = MOST) -> list[Metric]:
    """Returns the metrics of the first `most` events (None: all), or only of the event with this label, for
    each class and over the time until the next event; empty without messages or such events.

    They are lost messages, unanswered requests, the longest pause in the arrivals of one flow at one
    receiver, the longest pause before any event, and the recovery time. For requests, replies count as
    arrivals. Only a pause more than TIMES times as long as the longest one before any event has a recovery
    time, and none has one that lasts to the end of the records. Messages in flight at the event belong to it
    (see `_sendings`); so does a pause in which the next arrival was due after the event.
    """
    return [metric for one in _by_event(run, label, most) for metric in _of_event(*one)]


def unended(run: Run, label: str) -> frozenset[Of]:
    """Returns the event with this label, and each class with a pause that did not end: an arrival was due
    before the next event or the end of the hold, but no arrival of the flow came from then on.
    """
    return frozenset(
        of for of, event, _, pauses, usual in _by_event(run, label)
        if _near(event, pauses, usual).get_column("end_ns").null_count()
    )  # fmt: skip


def _by_event(
    run: Run, label: str | None, most: int | None = None
) -> Iterator[tuple[Of, Happened, pl.DataFrame, pl.DataFrame, Usual]]:
    """Yields each class and event with the messages sent for it, the class's pauses and its usual pause: the
    first `most` events (None: all), or only the one with this label.
    """
    table = run.table("messages")
    if table is None:
        return
    there = pl.when(pl.col("pattern") == "request").then("replied_ns").otherwise("received_ns")
    expected = table.filter(pl.col("receiver").is_not_null()).with_columns(there_ns=there)
    happened = events(run)
    classes = expected.partition_by("class", as_dict=True)
    for (name,), rows in sorted(classes.items(), key=lambda one: str(one[0])):
        pauses = _pauses(rows)
        usual = _usual(rows, pauses, min((event.from_ns for event in happened), default=0))
        every = list(zip(happened, _sendings(happened, usual.way_ns), strict=True))
        chosen = every[:most] if label is None else [one for one in every if one[0].label == label]
        for event, sendings in chosen:
            sent = rows.filter(_SENT.is_between(*sendings, closed="left"))
            yield Of(traffic_class=str(name), event=event.label), event, sent, pauses, usual


def events(run: Run) -> list[Happened]:
    """Returns the successful events of the hold that can interrupt a flow, in order; several with one label
    at one time count as one. Empty without events or hold.
    """
    table, hold = run.table("events"), phases(run).get("hold")
    if table is None or hold is None:
        return []
    rows = table.filter(pl.col("action").is_in(ACTIONS) & pl.col("ok")).sort("t_ns")
    rows = rows.filter(pl.col("t_ns").is_between(hold.start_ns, hold.end_ns, closed="left"))
    rows = rows.unique(["planned_ns", "label"], keep="first", maintain_order=True)
    starts = rows.get_column("t_ns").to_list()
    mends = rows.select((pl.col("action") == UP) | pl.col("label").str.ends_with(OVER)).to_series().to_list()
    return [
        Happened(label, start, end, mending)
        for label, start, end, mending in zip(
            _labels(rows), starts, [*starts, hold.end_ns][1:], mends, strict=True
        )
    ]


def _labels(rows: pl.DataFrame) -> Iterator[str]:
    """Yields the names of the events, each by its label or else by action and targets; the n-th event of the
    same name becomes NAME (n).
    """
    seen: dict[str, int] = {}
    for row in rows.to_dicts():
        label = str(row["label"] or f"{row['action']} {' '.join(row['targets'] or ())}").strip()
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _usual(rows: pl.DataFrame, pauses: pl.DataFrame, before_ns: int) -> Usual:
    """Returns the longest pause and transit time of a class, from messages that arrived until `before_ns`,
    the first event.

    Later messages are left out, because backlog lengthens their transit time. Without earlier messages, the
    transit time is the shortest of all, and the pause is 0.
    """
    pause, way = pl.col("end_ns") - pl.col("start_ns"), pl.col("there_ns") - pl.col("sent_ns")
    there = rows.filter(pl.col("sent_ns") > 0)
    way_ns = _whole(there.filter(pl.col("there_ns") <= before_ns), way.max()) or _whole(there, way.min())
    return Usual(_whole(pauses.filter(pl.col("end_ns") <= before_ns), pause.max()), way_ns)


def _sendings(happened: list[Happened], way_ns: int) -> list[tuple[int, int]]:
    """Returns for each event the range of sending times (Unix ns) of the messages that belong to it.

    A message belongs to the first event during its transit. If there is none, or if that event only repairs,
    the message belongs to the last event before its sending. So a loss on a link that is down belongs to the
    event that took the link down, also just before the link comes up again.
    """
    first = [
        event.from_ns if event.mends else max(event.from_ns - way_ns, before_ns)
        for event, before_ns in zip(happened, [0, *(event.from_ns for event in happened)], strict=False)
    ]
    return list(zip(first, [*first, *(event.until_ns for event in happened[-1:])][1:], strict=True))


def _pauses(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the times between arrivals of each flow at each receiver: flow, receiver, start_ns and end_ns.

    After the last arrival there is a pause without end (null) if later messages were scheduled and did not
    arrive.
    """
    came = rows.drop_nulls("there_ns").sort(*PAIR, "there_ns")
    between = came.select(
        *PAIR, start_ns=pl.col("there_ns").shift(1).over(PAIR), end_ns="there_ns"
    ).drop_nulls()
    last = came.group_by(PAIR, maintain_order=True).agg(start_ns=pl.col("there_ns").max())
    late = rows.filter(pl.col("there_ns").is_null()).join(last, on=PAIR)
    never = late.filter(pl.col("scheduled_ns") > pl.col("start_ns")).unique(PAIR, maintain_order=True)
    return pl.concat([between, never.select(*PAIR, "start_ns", end_ns=pl.lit(None, pl.Int64))])


def _whole(rows: pl.DataFrame, value: pl.Expr) -> int:
    """Returns the value of an expression over the rows as an integer; 0 if it is null."""
    found: Any = rows.select(value).item()
    return int(found or 0)


def _near(event: Happened, pauses: pl.DataFrame, usual: Usual) -> pl.DataFrame:
    """Returns the pauses in which the next arrival was due between the event and the next one, with their
    lengths; one without an end lasts until the next event.
    """
    due = pl.col("start_ns") + usual.pause_ns
    return pauses.filter(due.is_between(event.from_ns, event.until_ns, closed="left")).with_columns(
        long_ns=pl.col("end_ns").fill_null(event.until_ns) - pl.col("start_ns")
    )


def _of_event(
    of: Of, event: Happened, sent: pl.DataFrame, pauses: pl.DataFrame, usual: Usual
) -> list[Metric]:
    gone = sent.filter(pl.col("there_ns").is_null() & (pl.col("sent_ns") > 0))
    # messages that neither arrived nor were answered
    lost = gone.filter(pl.col("received_ns").is_null()).height
    near = _near(event, pauses, usual)
    found = [count("interruption_lost", of, lost, "messages", sent.height, "sent until the next event")]
    if (requests := sent.filter(pl.col("pattern") == "request").height) > 0:
        unanswered = gone.filter(pl.col("pattern") == "request").height
        how = "requests sent until the next event"
        found.append(count("interruption_unanswered", of, unanswered, "messages", requests, how))
    if near.is_empty():
        return found
    worst = near.sort("long_ns", descending=True, maintain_order=True).row(0, named=True)
    n = near.select(PAIR).n_unique()
    how = "longest time between arrivals of one flow at one receiver"
    found.append(count("interruption", of, worst["long_ns"] * 1e-6, "ms", n, how))
    if usual.pause_ns:
        found.append(
            count("interruption_before", of, usual.pause_ns * 1e-6, "ms", n, f"{how}, before any event")
        )
    if worst["end_ns"] is not None and worst["long_ns"] > TIMES * usual.pause_ns:
        after_s = (worst["end_ns"] - event.from_ns) / SECOND
        found.append(
            count("interruption_until", of, after_s, "s", n, "from the event to the end of that time")
        )
    return found
