"""The verdict of the QoS validation, as capture.delivery gives it, among the metrics."""

from __future__ import annotations

from capture.delivery import Verdict, verdicts
from reports.metrics.metric import Metric, count
from reports.rundir import Run


def delivery(run: Run) -> list[Verdict]:
    """One verdict per QoS level in the run; empty without messages."""
    table = run.table("messages")
    return [] if table is None else verdicts(table)


def delivery_metrics(run: Run) -> list[Metric]:
    """1 where the guarantee held, 0 where not; a level that could not be judged is left out."""
    return [
        count("qos_guarantee", f"QoS {v.qos}", float(v.holds), "1 holds, 0 fails", v.expected, v.rule)
        for v in delivery(run)
        if v.holds is not None
    ]
