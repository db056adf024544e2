"""Whether what was promised held, as capture.delivery judges it, among the metrics."""

from __future__ import annotations

from capture.delivery import Verdict, verdicts
from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run


def delivery(run: Run) -> list[Verdict]:
    """One verdict per class and promise in the run; empty without messages, or without the plan."""
    table = run.table("messages")
    return [] if table is None or not run.plan else verdicts(table, run.plan)


def delivery_metrics(run: Run) -> list[Metric]:
    """1 where the promise held, 0 where not; what could not be judged is left out."""
    return [
        count(
            "promise_held",
            Of(traffic_class=v.class_, promise=v.promise),
            float(v.holds),
            "1 holds, 0 fails",
            v.expected,
            v.rule,
        )
        for v in delivery(run)
        if v.holds is not None
    ]
