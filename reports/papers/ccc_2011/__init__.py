"""Defines the report of chapter 7 of "Cooperative congestion control in power grid communication networks"
(2011): its tables and figures with the values of vNET's runs.
"""

from __future__ import annotations

from pathlib import Path

from reports.papers.ccc_2011 import early, figures, intervals, serial, tables
from reports.papers.paper import Paper
from reports.papers.published import reference

ROOM = Path(__file__).parent

CCC_2011 = Paper(
    name="ccc_2011",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="cooperative congestion control, 2011, chapter 7",
    intro="Tables 7.1 to 7.4 with the printed values beside ours. The paper leaves open how much its link "
    "carries, what the estimator weighs and when a share is given back; the topology says what ours do.",
    room=ROOM,
    draws=figures.specs,
    prints=tables.tables,
    measures=lambda run: [*intervals.interval_metrics(run), *early.early_metrics(run)],
    gathers=serial.gathered,
)
