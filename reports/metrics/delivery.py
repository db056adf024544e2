"""Turns the verdicts of capture.delivery on delivery guarantees into metrics."""

from __future__ import annotations

from capture.delivery import Verdict, verdicts
from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run


def delivery(run: Run) -> list[Verdict]:
    """Returns one verdict for each class and guarantee of the run; empty without messages or plan."""
    table = run.table("messages")
    return [] if table is None or not run.planned else verdicts(table, run.plan)


def delivery_metrics(run: Run) -> list[Metric]:
    """Returns the metric guarantee_held for each class and name of a guarantee: 1 if all guarantees of that
    name hold, 0 if one fails.

    Guarantees whose verdict is "cannot tell" are left out.
    """
    judged: dict[Of, list[Verdict]] = {}
    for v in delivery(run):
        if v.holds is not None:
            judged.setdefault(Of(traffic_class=v.class_, guarantee=v.guarantee), []).append(v)
    return [
        count(
            "guarantee_held",
            of,
            float(all(v.holds for v in found)),
            "1 holds, 0 fails",
            sum(v.expected for v in found),
            "; ".join(dict.fromkeys(v.rule for v in found)),
        )
        for of, found in judged.items()
    ]
