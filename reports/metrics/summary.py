"""Computes all metrics of a run, which are the content of its summary.json."""

from __future__ import annotations

from reports.metrics.connections import connection_metrics
from reports.metrics.delivery import delivery_metrics
from reports.metrics.fairness import fairness_metrics
from reports.metrics.groups import disk_metrics, group_metrics
from reports.metrics.hierarchy import hierarchy_metrics
from reports.metrics.interruptions import interruption_metrics
from reports.metrics.links import link_metrics
from reports.metrics.load import host_metrics, load_metrics
from reports.metrics.messages import latency_metrics, message_metrics
from reports.metrics.metric import Metric, read
from reports.metrics.packets import packet_metrics
from reports.metrics.programs import program_metrics
from reports.metrics.requests import request_metrics
from reports.metrics.stacks import stack_metrics
from reports.metrics.throughput import throughput_metrics
from reports.metrics.transfers import transfer_metrics
from reports.metrics.trials import trial_metrics
from reports.rundir import Run

TABLES = ("*.parquet", "packets/*.parquet", "connections/*.parquet", "plan.json")


def measured(run: Run) -> list[Metric]:
    """Returns the metrics in summary.json if it is unaltered, readable and not older than the run's tables
    and plan, else those of `summarise`.
    """
    path = run.path / "summary.json"
    if path.exists() and "summary.json" not in run.altered:
        made = path.stat().st_mtime_ns
        if all(file.stat().st_mtime_ns <= made for pattern in TABLES for file in run.path.glob(pattern)):
            found = read(run.path)
            if found is not None:
                return found
    return summarise(run)


def summarise(run: Run) -> list[Metric]:
    """Returns all metrics that the run's files allow; a metric that cannot be computed is absent,
    not zero.
    """
    return [
        *load_metrics(run),
        *group_metrics(run),
        *stack_metrics(run),
        *disk_metrics(run),
        *host_metrics(run),
        *link_metrics(run),
        *latency_metrics(run),
        *message_metrics(run),
        *delivery_metrics(run),
        *interruption_metrics(run),
        *transfer_metrics(run),
        *fairness_metrics(run),
        *packet_metrics(run),
        *throughput_metrics(run),
        *hierarchy_metrics(run),
        *connection_metrics(run),
        *request_metrics(run),
        *trial_metrics(run),
        *program_metrics(run),
    ]
