"""What timeline events do to each class of messages: what is lost, how long nothing comes, until when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.roles import SECOND, phases
from reports.rundir import Run

ACTIONS = ("link-down", "link-up", "impair", "stop", "kill", "restart")  # that may stand in a flow's way
MOST = 40  # events with figures of their own, the first ones
TIMES = 2.0  # a pause so many times the longest before the event is an interruption
PAIR = ("flow", "receiver")


@dataclass(frozen=True)
class Happened:
    """An event, until the next one or the end of the hold; Unix ns."""

    label: str
    from_ns: int
    until_ns: int


@dataclass(frozen=True)
class Usual:
    """Of a class: the longest pause before any event (0: none is known), and the median time on its way."""

    pause_ns: int
    way_ns: int


def interruption_metrics(run: Run) -> list[Metric]:
    """By event and class: messages sent until the next event that never arrived, requests that got no
    reply, the longest pause in arrivals of one flow at one receiver, the longest before any event, and
    when that pause was over.

    Of requests the replies count. A pause that is not over by the end of the records has no such time. What
    was on its way when the event came belongs to it: a message from when it was due at the receiver, a pause
    from when the next arrival was due.
    """
    table = run.table("messages")
    if table is None:
        return []
    there = pl.when(pl.col("pattern") == "request").then("replied_ns").otherwise("received_ns")
    expected = table.filter(pl.col("receiver").is_not_null()).with_columns(there_ns=there)
    happened = events(run)
    classes = expected.partition_by("class", as_dict=True)
    found: list[Metric] = []
    for (name,), rows in sorted(classes.items(), key=lambda one: str(one[0])):
        pauses = _pauses(rows)
        before_ns = min((event.from_ns for event in happened), default=0)
        usual = Usual(
            _whole(
                pauses.filter(pl.col("end_ns") <= before_ns), (pl.col("end_ns") - pl.col("start_ns")).max()
            ),
            _whole(rows, (pl.col("there_ns") - pl.col("scheduled_ns")).median()),
        )
        for event in happened:
            found += _of_event(Of(traffic_class=str(name), event=event.label), event, rows, pauses, usual)
    return found


def events(run: Run) -> list[Happened]:
    """Those that were carried out in the hold, in order; several at one moment under one label are one."""
    table, hold = run.table("events"), phases(run).get("hold")
    if table is None or hold is None:
        return []
    rows = table.filter(pl.col("action").is_in(ACTIONS) & pl.col("ok")).sort("t_ns")
    rows = rows.filter(pl.col("t_ns").is_between(hold.start_ns, hold.end_ns, closed="left"))
    rows = rows.unique(["planned_ns", "label"], keep="first", maintain_order=True).head(MOST)
    starts = rows.get_column("t_ns").to_list()
    return [
        Happened(label, start, end)
        for label, start, end in zip(_labels(rows), starts, [*starts, hold.end_ns][1:], strict=True)
    ]


def _labels(rows: pl.DataFrame) -> Iterator[str]:
    """What each is called; the second of a name is NAME (2)."""
    seen: dict[str, int] = {}
    for row in rows.to_dicts():
        label = str(row["label"] or f"{row['action']} {' '.join(row['targets'] or ())}").strip()
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _pauses(rows: pl.DataFrame) -> pl.DataFrame:
    """Of each flow and receiver the times between arrivals: start_ns, end_ns; end null where none came after
    it although some were sent.
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
    """One value of the rows; 0 where there is none."""
    found: Any = rows.select(value).item()
    return int(found or 0)


def _of_event(
    of: Of, event: Happened, rows: pl.DataFrame, pauses: pl.DataFrame, usual: Usual
) -> list[Metric]:
    def within(column: str, late_ns: int) -> pl.Expr:
        return (pl.col(column) + late_ns).is_between(event.from_ns, event.until_ns, closed="left")

    sent = rows.filter(within("scheduled_ns", usual.way_ns))
    gone = sent.filter(pl.col("there_ns").is_null() & (pl.col("sent_ns") > 0))
    lost = gone.filter(pl.col("received_ns").is_null()).height  # of a request: neither there nor answered
    near = pauses.filter(within("start_ns", usual.pause_ns)).with_columns(
        long_ns=pl.col("end_ns").fill_null(event.until_ns) - pl.col("start_ns")
    )
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
