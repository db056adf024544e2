"""Finds the time for which an expectation is judged, and restricts a run to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from contract.plan import Expectation
from reports.metrics.interruptions import OVER
from reports.roles import Span, origin_ns, phases
from reports.rundir import Run


def span_of(run: Run, one: Expectation) -> Span | None:
    """Returns the time of `during` or `after`; None if the event did not happen, if its time is empty, or if
    the run has no hold.

    `during` ends when the event is undone, else with the hold; `after` ends with the hold.
    """
    label, hold = one.during or one.after, phases(run).get("hold")
    events = run.table("events")
    if events is None or hold is None:
        return None
    start = first_ns(events, label)
    if start is None:
        return None
    over = first_ns(events, f"{label}{OVER}") if one.during else None
    end = hold.end_ns if over is None else over
    return Span(label, start, end) if end > start else None


def first_ns(events: pl.DataFrame, label: str) -> int | None:
    """Returns the time in Unix ns at which the first event of that label was applied successfully; None if
    none was.
    """
    found: Any = events.filter((pl.col("label") == label) & pl.col("ok")).get_column("t_ns").min()
    return None if found is None else int(found)


def whole_ns(run: Run) -> Span | None:
    """Returns the time from the start of the scenario to the end of the last phase; None if it is
    not known.
    """
    start, ends = origin_ns(run), [phase.end_ns for phase in phases(run).values()]
    return Span("run", start, max(ends)) if start is not None and ends and max(ends) > start else None


def narrowed(run: Run, span: Span) -> Run:
    """Returns the run with `span` as its hold and its only phase, and with only the messages that were
    scheduled in it.
    """
    known = replace(run.manifest, phases={"hold": [span.start_ns, span.end_ns]})
    return replace(run, read_manifest=lambda: known, tables=_Narrowed(run.tables, span))


@dataclass(frozen=True)
class _Narrowed(Mapping[str, pl.DataFrame]):
    """The tables of a run; the table of messages has only those that were scheduled in the span, without its
    end.
    """

    tables: Mapping[str, pl.DataFrame]
    span: Span

    def __getitem__(self, name: str) -> pl.DataFrame:
        found = self.tables[name]
        if name != "messages":
            return found
        inside = pl.col("scheduled_ns").is_between(self.span.start_ns, self.span.end_ns, closed="left")
        return found.filter(inside)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)
