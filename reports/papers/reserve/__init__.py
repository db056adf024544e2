"""Reports RESERVE's deliverable D4.6 (2018) from our runs: tests of AMQP, MQTT, UDP and Sampled Values on
three systems.
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
    """Returns the metrics that the claims on tests 8, 4 and 5 need beyond a run's own."""
    return [*efficiency_metrics(run), *recovery_metrics(run)]


def tables_of(study: Study) -> tuple[Table, ...]:
    """Returns the tables of all tests that the study has runs of."""
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
