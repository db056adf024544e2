"""Every headline figure of a run, in the order of the summary."""

from __future__ import annotations

from reports.metrics.delivery import delivery_metrics
from reports.metrics.load import host_metrics, load_metrics
from reports.metrics.messages import latency_metrics, message_metrics
from reports.metrics.metric import Metric
from reports.metrics.packets import packet_metrics
from reports.metrics.trials import trial_metrics
from reports.rundir import Run


def summarise(run: Run) -> list[Metric]:
    """All metrics that the run's files allow; what cannot be computed is absent, never zero."""
    return [
        *load_metrics(run),
        *host_metrics(run),
        *latency_metrics(run),
        *message_metrics(run),
        *delivery_metrics(run),
        *packet_metrics(run),
        *trial_metrics(run),
    ]
