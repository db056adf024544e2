"""Adds tables that the paper lacks: deadlines missed in queues that flows of different deadlines share, and
under faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from reports.papers.ccc_2011.intervals import deadlines_ns, label, text_of, within
from reports.papers.paper import Table
from reports.rundir import Run
from reports.study import Study

Span = tuple[float, float]
Found = dict[tuple[str, str, Span], list[float]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment with several labs in one run. The traffic class LAB-FLOW is the flow FLOW of
    the lab LAB.
    """

    labs: dict[str, str]  # the part of the class before the flow -> the lab's title
    flows: tuple[str, ...]
    spans: tuple[Span, ...]  # s from the load's start
    caption: str


DEADLINES = Experiment(
    {
        "kernel": "the kernel's queue, first in first out",
        "fifo": "the overlay's queue, first in first out",
        "edf": "the overlay's, earliest deadline first",
        "drop": "the same, what is too late dropped",
    },
    ("pmu", "measurements"),
    ((5.0, 30.0), (35.0, 60.0)),
    "Beyond the paper: a class that a PMU (50 ms) and measurements that come twelve at once (250 ms) share; "
    "until 30 s they need 80 % of its rate, then 120 %.",
)
FAULTS = Experiment(
    {
        "none": "nothing happens",
        "dies": "the router dies from 50 to 55 s",
        "lost": "its notifications are lost from 39 to 50 s",
    },
    ("hrt", "lrt", "be"),
    ((30.0, 40.0), (40.0, 50.0), (50.0, 55.0), (55.0, 60.0), (60.0, 70.0)),
    "Beyond the paper: HRT sends twice what is reserved for it from 40 s on, and beside it something fails. "
    "Best effort has no deadline: what of it is lost.",
)


def tables(study: Study) -> tuple[Table, ...]:
    """Returns a table for each experiment (DEADLINES, FAULTS) of which the study has runs."""
    return tuple(
        _table(experiment, found)
        for experiment in (DEADLINES, FAULTS)
        if (found := _found(study, experiment))
    )


def _found(study: Study, experiment: Experiment) -> Found:
    """Returns the percentages of `shares` of all repetitions by lab, flow and span."""
    found: Found = {}
    for cell in study.cells:
        for key, value in shares(cell.run, experiment):
            found.setdefault(key, []).append(value)
    return found


def shares(run: Run, experiment: Experiment) -> Iterator[tuple[tuple[str, str, Span], float]]:
    """Yields ((lab, flow, span), % of the flow's packets that arrived late or never) for each span with
    packets; nothing for a run of another experiment. Flows without a deadline have no late packets.
    """
    rows, deadlines = within(run), deadlines_ns(run)
    names = {(lab, flow): f"{lab}-{flow}" for lab in experiment.labs for flow in experiment.flows}
    if rows is None or not set(names.values()) <= set(rows["class"].unique()):
        return
    for (lab, flow), name in names.items():
        of_flow = rows.filter(pl.col("class") == name)
        late = pl.col("latency_ns") > deadlines[name] if name in deadlines else pl.lit(False)
        for span in experiment.spans:
            part = of_flow.filter(pl.col("at").is_between(*span, closed="left"))
            missed = part.filter(pl.col("received_ns").is_null() | late)
            if part.height:
                yield (lab, flow, span), 100 * missed.height / part.height


def _table(experiment: Experiment, found: Found) -> Table:
    rows = [
        (
            title,
            flow.upper() if len(flow) < 4 else flow,
            *(text_of(found.get((lab, flow, span))) for span in experiment.spans),
        )
        for lab, title in experiment.labs.items()
        for flow in experiment.flows
    ]
    head = ("too late or lost, % of the packets sent", "flow", *(label(span) for span in experiment.spans))
    return Table("", experiment.caption, head, tuple(rows))
