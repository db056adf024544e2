"""Computes the metrics and the table of test 7: the clock error that programs state in their logs although
the clock is correct.
"""

from __future__ import annotations

import re

import numpy as np

from contract import regular
from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import batch_means, percentile
from reports.numbers import plain, plus_minus
from reports.papers.paper import Table
from reports.rundir import Run
from reports.study import Study

# Software of the device in reserve-clock.yaml -> title. Its log is raw/logs/device.NAME.log.
CLIENTS = {
    "clock": "chronyd, the kernel's time stamps",
    "ptp": "ptp4l, the kernel's time stamps",
    "sntp": "SNTP, the program's own time stamps",
}
# Output of chronyd -Q, and of the SNTP client in the same form: the seconds that the clock is slow.
SAID = re.compile(r"System clock wrong by (-?\d+\.\d+) seconds")
# ptp4l reports in ns how far the clock is ahead; lines with path delay 0, before it has one, are skipped.
SAID_BY_PTP = re.compile(r"master offset +(-?\d+) .* path delay +([1-9]\d*)")
PERCENTILES = {"p2": 0.02, "p98": 0.98}


def clock_metrics(run: Run) -> list[Metric]:
    """Returns for each client with clock errors in its log: the mean, the 2nd and 98th percentile and the
    largest absolute value of its clock error, in ms; empty without logs.
    """
    found: list[Metric] = []
    for name in CLIENTS:
        log = run.path / "raw" / "logs" / f"device.{name}.log"
        if not log.exists():
            continue
        text = regular.read_bytes(log).decode(errors="replace")
        errors = np.array(said_ms(text))
        if not len(errors):
            continue
        of, ordered = Of(role=name), np.sort(errors)
        found.append(metric("clock_error_mean", of, "ms", batch_means(errors.tolist())))
        for word, share in PERCENTILES.items():
            found.append(metric(f"clock_error_{word}", of, "ms", percentile(ordered, share)))
        worst = float(np.abs(errors).max())
        found.append(count("clock_error_worst", of, worst, "ms", len(errors), "largest, either way"))
    return found


def said_ms(log: str) -> list[float]:
    """Returns the clock errors in a client's log, in ms; a positive error means that the clock is slow. Lines
    of chronyd and the SNTP client count; those of ptp4l count only if there are none.
    """
    wrong = [1000 * float(value) for value in SAID.findall(log)]
    return wrong or [-int(ahead) / 1e6 for ahead, _ in SAID_BY_PTP.findall(log)]


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the table with one row for each scenario, series and client; empty without runs of the test."""
    found = study.added(clock_metrics)
    value = {
        (row["scenario"], row["series"], row["role"], row["name"]): row for row in found.iter_rows(named=True)
    }
    rows = []
    for scenario, series, role in sorted({key[:3] for key in value if key[3].startswith("clock_error")}):
        mean = value[scenario, series, role, "clock_error_mean"]
        rest = (value[scenario, series, role, f"clock_error_{word}"] for word in (*PERCENTILES, "worst"))
        title = ", ".join(part for part in (scenario, series, CLIENTS[role]) if part)
        shown = plus_minus(mean["value"], mean["low"], mean["high"])
        rows.append((title, shown, *(plain(round(row["value"], 4)) for row in rest)))
    if not rows:
        return ()
    caption = (
        "Test 7. Error of the offset that each believes, ms: all nodes share one clock, so the truth is 0. "
        "Below zero: it takes its clock to be fast."
    )
    head = ("", "mean", "2nd percentile", "98th percentile", "largest, either way")
    return (Table("", caption, head, tuple(rows)),)
