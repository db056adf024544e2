"""Defines the report of RESERVE's deliverable D4.6 (2018): tests of AMQP, MQTT, UDP and Sampled Values on
three systems, with the values of vNET's runs.
"""

from __future__ import annotations

from pathlib import Path

from reports.metrics.metric import Metric
from reports.papers.paper import Paper, Table
from reports.papers.published import reference
from reports.papers.reserve import boxes, clocks, highest, recovery, stacks, tables
from reports.papers.reserve.efficiency import efficiency_metrics
from reports.papers.reserve.recovery import recovery_metrics
from reports.rundir import Run
from reports.study import Study

ROOM = Path(__file__).parent


def measures(run: Run) -> list[Metric]:
    """Returns the metrics of tests 8, 4 and 5, which claims need beyond a run's own metrics."""
    return [*efficiency_metrics(run), *recovery_metrics(run)]


def tables_of(study: Study) -> tuple[Table, ...]:
    """Returns the tables of all tests of which the study has runs: tests 3, 4 and 5, 7 and 8."""
    rooms = (highest.tables, recovery.tables, clocks.tables, tables.tables)
    return tuple(table for prints in rooms for table in prints(study))


RESERVE = Paper(
    name="reserve",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="RESERVE D4.6, 2018",
    intro="Its systems are links here whose delays have the printed means and worst cases; its radio, "
    "VILLASnode and measurement computers are not there. Of its box plots it prints no values but those of "
    "its text.",
    room=ROOM,
    draws=lambda study: (*boxes.SPECS, recovery.SPEC, stacks.SPEC),
    prints=tables_of,
    measures=measures,
)
