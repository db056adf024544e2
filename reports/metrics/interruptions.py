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
UP, OVER = "link-up", ": over"  # an action, and a label's end (the plan's): they mend and take no message
MOST = 40  # events with figures of their own, the first ones
TIMES = 2.0  # a pause so many times the longest before the event is an interruption
PAIR = ("flow", "receiver")
_SENT = pl.when(pl.col("sent_ns") > 0).then("sent_ns").otherwise("scheduled_ns")


@dataclass(frozen=True)
class Happened:
    """An event, until the next one or the end of the hold; Unix ns."""

    label: str
    from_ns: int
    until_ns: int
    mends: bool | None = False


@dataclass(frozen=True)
class Usual:
    """Of a class before any event: the longest pause (0: none is known), and the longest time on its way."""

    pause_ns: int
    way_ns: int


def interruption_metrics(run: Run) -> list[Metric]:
    """By event and class: messages sent until the next event that never arrived, requests that got no
    reply, the longest pause in arrivals of one flow at one receiver, the longest before any event, and
    when that pause was over.

    Of requests the replies count. A pause that is not over by the end of the records has no such time. What
    was on its way when the event came belongs to it: a message by `_sendings`, a pause from when the next
    arrival was due.
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
        usual = _usual(rows, pauses, min((event.from_ns for event in happened), default=0))
        for event, sendings in zip(happened, _sendings(happened, usual.way_ns), strict=True):
            sent = rows.filter(_SENT.is_between(*sendings, closed="left"))
            found += _of_event(Of(traffic_class=str(name), event=event.label), event, sent, pauses, usual)
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
    mends = rows.select((pl.col("action") == UP) | pl.col("label").str.ends_with(OVER)).to_series().to_list()
    return [
        Happened(label, start, end, mending)
        for label, start, end, mending in zip(
            _labels(rows), starts, [*starts, hold.end_ns][1:], mends, strict=True
        )
    ]


def _labels(rows: pl.DataFrame) -> Iterator[str]:
    """What each is called; the second of a name is NAME (2)."""
    seen: dict[str, int] = {}
    for row in rows.to_dicts():
        label = str(row["label"] or f"{row['action']} {' '.join(row['targets'] or ())}").strip()
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _usual(rows: pl.DataFrame, pauses: pl.DataFrame, before_ns: int) -> Usual:
    """The way of messages that were there before any event, since backlog after it lengthens the way; where
    there are none, the shortest way of all.
    """
    pause, way = pl.col("end_ns") - pl.col("start_ns"), pl.col("there_ns") - pl.col("sent_ns")
    there = rows.filter(pl.col("sent_ns") > 0)
    way_ns = _whole(there.filter(pl.col("there_ns") <= before_ns), way.max()) or _whole(there, way.min())
    return Usual(_whole(pauses.filter(pl.col("end_ns") <= before_ns), pause.max()), way_ns)


def _sendings(happened: list[Happened], way_ns: int) -> list[tuple[int, int]]:
    """Of each event, from when until when its messages were sent.

    A message belongs to the first event that came while it was under way. Where none came, or this one only
    mended, it belongs to the last event before its sending: what a link that is down has taken belongs to its
    going down, also what was sent just before it came up again.
    """
    first = [
        event.from_ns if event.mends else max(event.from_ns - way_ns, before_ns)
        for event, before_ns in zip(happened, [0, *(event.from_ns for event in happened)], strict=False)
    ]
    return list(zip(first, [*first, *(event.until_ns for event in happened[-1:])][1:], strict=True))


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
    of: Of, event: Happened, sent: pl.DataFrame, pauses: pl.DataFrame, usual: Usual
) -> list[Metric]:
    gone = sent.filter(pl.col("there_ns").is_null() & (pl.col("sent_ns") > 0))
    lost = gone.filter(pl.col("received_ns").is_null()).height  # of a request: neither there nor answered
    due = pl.col("start_ns") + usual.pause_ns
    near = pauses.filter(due.is_between(event.from_ns, event.until_ns, closed="left")).with_columns(
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
